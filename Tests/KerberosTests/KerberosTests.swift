import Foundation
import Kerberos
import ProgramUnderTest
import Testing

/// Each test has a process of its own: the library reads the way to its realm from the environment.
@Suite("RFC 4178, RFC 4121 SPNEGO with Kerberos", .enabled(if: KerberosRealm.isInstalled, "package krb5-kdc"))
struct KerberosTests {
    static let password = Array("open sesame".utf8)

    @Test func `a password, a keytab or a cache makes tokens for a service`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { realm in
                let keytab = try realm.keytab("fleet", of: "fleet")
                try run("printf 'open sesame\\n' | kinit fleet")
                let sources: [InitiatorCredential.Source] = [
                    .password(KerberosTests.password, principal: "fleet"),
                    .password(KerberosTests.password, principal: "fleet@LARDER.EXAMPLE"),
                    .keytab(file: keytab, principal: "fleet"), .keytab(file: keytab, principal: nil),
                    .defaultCache(principal: nil), .defaultCache(principal: "fleet"),
                ]
                for source in sources {
                    let credential = try InitiatorCredential(source)
                    for binding in [nil, Array("tls-server-end-point:0123".utf8)] {
                        let context = try SecurityContext(
                            service: "HTTP", host: "origin.example", credential, channelBindings: binding)
                        let (token, isComplete) = try context.step(nil)
                        // A NegTokenInit is [APPLICATION 0], and names SPNEGO first.
                        #expect(token.first == 0x60 && token.count > 200, "\(source)")
                        // The server has to prove itself.
                        #expect(!isComplete)
                    }
                }
            }
        }
    }

    @Test func `one ticket does for many contexts, with a password and with a keytab`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { realm in
                let keytab = try realm.keytab("fleet", of: "fleet")
                let sources: [InitiatorCredential.Source] = [
                    .password(KerberosTests.password, principal: "fleet"), .keytab(file: keytab, principal: nil),
                ]
                for source in sources {
                    let credential = try InitiatorCredential(source)
                    var counts: [Int] = []
                    for _ in 1...3 {
                        let context = try SecurityContext(
                            service: "HTTP", host: "origin.example", credential, channelBindings: nil)
                        _ = try context.step(nil)
                        counts.append(realm.requests.count)
                    }
                    #expect(counts[1] == counts[0] && counts[2] == counts[0], "\(realm.requests)")
                }
            }
        }
    }

    @Test func `what the center refuses is told from what it was never asked`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { realm in
                let refused: [InitiatorCredential.Source] = [
                    .password(Array("wrong".utf8), principal: "fleet"),
                    .password(KerberosTests.password, principal: "nobody"),
                ]
                for source in refused {
                    let failure = failureOf { _ = try InitiatorCredential(source) }
                    #expect(
                        failure?.step == .credential && failure?.isRefusal == true, "\(source) \(failure?.text ?? "")")
                    #expect(failure?.text.contains("\n") == false)
                }
                let missing: [InitiatorCredential.Source] = [
                    .keytab(file: "\(realm.directory)/none", principal: nil),
                    .keytab(file: "\(realm.directory)/none", principal: "fleet"),
                ]
                for source in missing {
                    let failure = failureOf { _ = try InitiatorCredential(source) }
                    #expect(
                        failure?.isRefusal == false && failure?.text.isEmpty == false,
                        "\(source) \(failure?.text ?? "")")
                }
                let credential = try InitiatorCredential(.password(KerberosTests.password, principal: "fleet"))
                let context = try SecurityContext(
                    service: "HTTP", host: "unknown.example", credential, channelBindings: nil)
                let unknown = failureOf { _ = try context.step(nil) }
                #expect(unknown?.step == .context && unknown?.text.contains("not found") == true)
                realm.stop()
                let silent = failureOf {
                    _ = try InitiatorCredential(.password(KerberosTests.password, principal: "fleet"))
                }
                #expect(silent?.isRefusal == false && silent?.text.contains("KDC") == true, "\(silent?.text ?? "")")
            }
        }
    }

    @Test func `a token of the server that is none is an error`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { _ in
                let credential = try InitiatorCredential(.password(KerberosTests.password, principal: "fleet"))
                for received in [[0x60], Array("NTLMSSP\0".utf8), [UInt8](repeating: 0xA1, count: 4000)] {
                    let context = try SecurityContext(
                        service: "HTTP", host: "origin.example", credential, channelBindings: nil)
                    _ = try context.step(nil)
                    #expect(failureOf { _ = try context.step(received) }?.step == .context)
                }
            }
        }
    }
}

/// What the proxy does with the tokens of its clients.
@Suite("RFC 4559 Negotiate, accepted", .enabled(if: KerberosRealm.isInstalled, "package krb5-kdc"))
struct AcceptorTests {
    private static func token(for host: String = "origin.example") throws -> (SecurityContext, [UInt8]) {
        let credential = try InitiatorCredential(.password(KerberosTests.password, principal: "fleet"))
        let context = try SecurityContext(service: "HTTP", host: host, credential, channelBindings: nil)
        return (context, try context.step(nil).token)
    }

    @Test func `a token names its client, once`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { realm in
                let keytab = try realm.keytab("service", of: "HTTP/origin.example")
                for principal in [nil, "HTTP/origin.example@LARDER.EXAMPLE"] {
                    let acceptor = try AcceptorCredential(keytab: keytab, principal: principal)
                    let (initiator, token) = try AcceptorTests.token()
                    let context = AcceptorContext(acceptor)
                    let (reply, client) = try context.step(token)
                    #expect(client?.principal == "fleet@LARDER.EXAMPLE")
                    // A day, and the five minutes that clocks may be apart.
                    #expect((1...86_700).contains(client?.lifetime ?? 0))
                    // The proxy proves itself as well.
                    #expect(try initiator.step(reply).isComplete)
                    // Who has heard the token cannot use it.
                    let replayed = failureOf { _ = try AcceptorContext(acceptor).step(token) }
                    #expect(replayed?.step == .context, "\(replayed?.text ?? "it was accepted")")
                }
            }
        }
    }

    @Test func `other keys, other services and what is no token of Kerberos are refused`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { realm in
                try realm.add("HTTP/other.example")
                let keytab = try realm.keytab("service", of: "HTTP/origin.example", "HTTP/other.example")
                let other = try realm.keytab("other", of: "HTTP/other.example")
                let (_, token) = try AcceptorTests.token()
                for acceptor in [
                    try AcceptorCredential(keytab: other, principal: nil),
                    try AcceptorCredential(keytab: keytab, principal: "HTTP/other.example@LARDER.EXAMPLE"),
                ] {
                    #expect(failureOf { _ = try AcceptorContext(acceptor).step(token) }?.step == .context)
                }
                let acceptor = try AcceptorCredential(keytab: keytab, principal: nil)
                // SPNEGO that offers NTLM alone (1.3.6.1.4.1.311.2.2.10).
                let ntlm: [UInt8] = [
                    0x60, 0x1C, 0x06, 0x06, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x02, 0xA0, 0x12, 0x30, 0x10, 0xA0, 0x0E,
                    0x30,
                    0x0C, 0x06, 0x0A, 0x2B, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x02, 0x0A,
                ]
                for received in [[0x60], Array("NTLMSSP\0".utf8), ntlm, [UInt8](repeating: 0xA1, count: 4000)] {
                    #expect(failureOf { _ = try AcceptorContext(acceptor).step(received) }?.step == .context)
                }
            }
        }
    }
}

/// Runs `body` in a realm with a user and a service. Ends the process with an error if it throws.
private func withRealm(_ body: (KerberosRealm) throws -> Void) throws {
    let directory = try makeTemporaryDirectory("larder-realm")
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let realm = try KerberosRealm(in: directory)
    defer { realm.stop() }
    for (name, value) in realm.environment { unsafe setenv(name, value, 1) }
    try realm.add("fleet", password: "\"open sesame\"")
    try realm.add("HTTP/origin.example")
    try body(realm)
}

private func failureOf(_ body: () throws -> Void) -> GSSAPIFailure? {
    do { try body() } catch { return error as? GSSAPIFailure }
    return nil
}

/// In the environment of this process.
private func run(_ command: String) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", command]
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0, "\(command)")
}
