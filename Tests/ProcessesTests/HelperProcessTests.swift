import Foundation
import Processes
import Testing

private func soon() -> ContinuousClock.Instant { .now + .seconds(30) }

private func text(_ helper: HelperProcess) throws -> String {
    var bytes: [UInt8] = []
    while true {
        do throws(HelperFailure) {
            bytes += try helper.receive(until: soon())
        } catch {
            guard error == .ended else { throw error }
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}

@Suite("A helper process") struct HelperProcessTests {
    @Test func `what is sent arrives, and what it answers comes back`() throws {
        let helper = try HelperProcess(["/bin/sh", "-c", "read a; echo \"you said $a\" >&0"])
        try helper.send(Array("hello\n".utf8), until: soon())
        #expect(try text(helper) == "you said hello\n")
    }

    @Test func `it has no environment and no descriptor but its socket and two that lead nowhere`() throws {
        unsafe setenv("LARDER_TEST_SECRET", "hidden", 1)
        // Not closed when a program starts, as a careless library would leave it.
        let leaked = dup2(STDERR_FILENO, 200)
        defer { close(leaked) }
        let script = "for f in /proc/$$/fd/*; do echo ${f##*/}=$(readlink $f); done >&0; /usr/bin/env >&0"
        let lines = try text(try HelperProcess(["/bin/bash", "-c", script])).split(separator: "\n").map(String.init)
        let descriptors = lines.filter { $0.first?.isNumber == true && !$0.hasPrefix("255=") }
        // The shell itself moves descriptors while it runs a redirection: what it was given is below 10.
        let given = descriptors.filter { (Int($0.prefix { $0 != "=" }) ?? 0) < 10 && !$0.contains("pipe:") }
        #expect(given.count == 3, "\(lines)")
        #expect(given.count { $0.hasSuffix("=/dev/null") } <= 2, "\(lines)")
        #expect(!lines.contains { $0.hasPrefix("200=") }, "\(lines)")
        #expect(!lines.contains { $0.contains("LARDER_TEST_SECRET") }, "\(lines)")
    }

    @Test func `one that is silent is waited for until the moment, and killed with its object`() throws {
        var helper: HelperProcess? = try HelperProcess(["/bin/sh", "-c", "while :; do :; done"])
        let pid = try #require(helper).pid
        #expect(throws: HelperFailure.timedOut) { _ = try helper?.receive(until: .now + .milliseconds(50)) }
        #expect(kill(pid, 0) == 0)
        helper = nil
        #expect(kill(pid, 0) == -1 && errno == ESRCH)
    }

    @Test func `one that reads nothing does not hold its sender`() throws {
        let helper = try HelperProcess(["/bin/sleep", "60"])
        #expect(throws: HelperFailure.timedOut) {
            try helper.send([UInt8](repeating: 0, count: 16 << 20), until: .now + .milliseconds(200))
        }
    }

    @Test func `one that has ended takes and gives nothing`() throws {
        let helper = try HelperProcess(["/bin/true"])
        #expect(throws: HelperFailure.ended) { _ = try helper.receive(until: soon()) }
        #expect(throws: HelperFailure.ended) { while true { try helper.send([1], until: soon()) } }
    }

    @Test func `a program that does not exist is not started`() {
        #expect(throws: HelperFailure.system(ENOENT)) { _ = try HelperProcess(["/nowhere/helper"]) }
    }
}
