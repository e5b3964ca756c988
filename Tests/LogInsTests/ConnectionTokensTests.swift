import Credentials
import EventLoop
import Foundation
import Glibc
import Kerberos
import Message
import ProgramUnderTest
import Testing

@testable import LogIns

@Suite("Tokens of log-ins that belong to a connection: NTLM")
struct NTLMTokensTests {
    static let password = Secret("Password")
    static let user = NTLMCredential(user: "User", domain: "Domain", password: password)
    /// The CHALLENGE_MESSAGE of [MS-NLMP] §4.2.4.3, with the time of the server among its attributes.
    static let challenge = bytes(
        hex: """
            4e544c4d53535000020000000c000c003800000033828ae20123456789abcdef0000000000000000\
            300030004400000006007017 0000000f530065007200760065007200\
            02000c0044006f006d00610069006e0001000c00530065007200760065007200070008000090d336b734c30100000000
            """)

    @Test(arguments: [nil, [UInt8](repeating: 7, count: 32)])
    func `the third message answers the challenge, and is bound to host and channel`(_ endPoint: [UInt8]?) throws {
        let desk = TokenDesk(loop: try EventLoop(), tickets: TicketShelf())
        let tokens = ConnectionTokens(.ntlm(Self.user), host: "o.test", endPointHash: endPoint, desk: desk)
        #expect(try made(by: tokens, nil) == NTLMCredential.negotiate)
        let message = try made(by: tokens, Self.challenge)
        // The challenge of the client is random. With the same one, the message is the one of the published vectors.
        let field = Int(message[24]) | Int(message[25]) << 8
        let clientChallenge = Array(message[field + 32..<field + 40])
        #expect(
            try message
                == Self.user.authenticate(
                    try NTLMChallenge(Self.challenge), .init(host: "o.test", endPoint: endPoint),
                    clientChallenge: clientChallenge, at: desk.wallTime, using: OpenSSLHashing()))
        // The server has the last word, and goes on nevertheless.
        #expect(throws: TokenFailure.outOfOrder) { try made(by: tokens, Self.challenge) }
    }

    @Test func `two log-ins have different challenges of the client`() throws {
        let desk = TokenDesk(loop: try EventLoop(), tickets: TicketShelf())
        var messages: Set<[UInt8]> = []
        for _ in 1...2 {
            let tokens = ConnectionTokens(.ntlm(Self.user), host: "o.test", endPointHash: nil, desk: desk)
            _ = try made(by: tokens, nil)
            messages.insert(try made(by: tokens, Self.challenge))
        }
        #expect(messages.count == 2)
    }

    @Test func `a message that is no challenge, and a password that has no key, are failures and no refusals`() throws {
        let desk = TokenDesk(loop: try EventLoop(), tickets: TicketShelf())
        let rows: [(user: NTLMCredential, challenge: [UInt8], fault: NTLMFault)] = [
            (Self.user, Array("NTLMSSP\0".utf8), .outOfBounds),
            (Self.user, Array("hello, world".utf8), .notAChallenge),
            (NTLMCredential(user: "u", password: Secret([0xFF])), Self.challenge, .passwordIsNotUTF8),
        ]
        for (user, challenge, fault) in rows {
            let tokens = ConnectionTokens(.ntlm(user), host: "o.test", endPointHash: nil, desk: desk)
            _ = try made(by: tokens, nil)
            let failure = #expect(throws: TokenFailure.self) { try made(by: tokens, challenge) }
            #expect(failure == .ntlm(fault) && failure?.isRefusal == false)
            #expect(failure?.description.contains("Password") == false)
        }
    }

    @Test func `nothing is called within the call, after cancelling, or when the maker is gone`() throws {
        let loop = try EventLoop()
        let desk = TokenDesk(loop: loop, tickets: TicketShelf())
        var calls = 0
        let first = ConnectionTokens(.ntlm(Self.user), host: "o.test", endPointHash: nil, desk: desk)
        first.make(received: nil) { _ in calls += 1 }
        first.cancel()
        var second: ConnectionTokens? = ConnectionTokens(
            .ntlm(Self.user), host: "o.test", endPointHash: nil, desk: desk)
        second?.make(received: nil) { _ in calls += 1 }
        second = nil
        let third = ConnectionTokens(.ntlm(Self.user), host: "o.test", endPointHash: nil, desk: desk)
        var isDone = false
        third.make(received: nil) { _ in isDone = true }
        #expect(!isDone)
        runLoop(loop) { isDone }
        #expect(calls == 0)
    }

    @Test func `NTLM has nothing to verify`() throws {
        let desk = TokenDesk(loop: try EventLoop(), tickets: TicketShelf())
        let tokens = ConnectionTokens(.ntlm(Self.user), host: "o.test", endPointHash: nil, desk: desk)
        #expect(throws: Never.self) { try verified(by: tokens, [1, 2, 3]) }
    }
}

/// Each test has a process of its own: the library reads the way to its realm from the environment.
@Suite(
    "Tokens of log-ins that belong to a connection: Negotiate",
    .enabled(if: KerberosRealm.isInstalled, "package krb5-kdc"))
struct NegotiateTokensTests {
    static func identity(
        _ password: String = "open sesame", user: String = "fleet", secretNumber: UInt64 = 1
    ) -> NegotiateIdentity {
        NegotiateIdentity(
            credential: "c", secretNumber: secretNumber, source: .password(Array(password.utf8), principal: user))
    }

    static func tokens(
        _ desk: TokenDesk, _ identity: NegotiateIdentity = identity(), host: String = "origin.example",
        endPointHash: [UInt8]? = nil
    ) -> ConnectionTokens {
        ConnectionTokens(.negotiate(identity), host: host, endPointHash: endPointHash, desk: desk)
    }

    @Test func `the server accepts the token, and proves itself in turn`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { _ in
                let desk = TokenDesk(loop: try EventLoop(), tickets: TicketShelf())
                let hash = [UInt8](repeating: 7, count: 32)
                let binding = Array("tls-server-end-point:".utf8) + hash
                for (endPointHash, expected) in [(nil, nil), (hash, nil), (hash, binding)] as [([UInt8]?, [UInt8]?)] {
                    let tokens = NegotiateTokensTests.tokens(desk, endPointHash: endPointHash)
                    let acceptor = Acceptor(channelBindings: expected)
                    let proof = try #require(acceptor.accept(try made(by: tokens, nil)))
                    #expect(throws: Never.self) { try verified(by: tokens, proof) }
                    // It has proven itself.
                    #expect(throws: TokenFailure.outOfOrder) { try made(by: tokens, proof) }
                }
                // The channel is another one: somebody stands in between.
                let tokens = NegotiateTokensTests.tokens(desk, endPointHash: hash.reversed() + [1])
                #expect(Acceptor(channelBindings: binding).accept(try made(by: tokens, nil)) == nil)
            }
        }
    }

    @Test func `the proof of another log-in, a changed one and none at all prove nothing`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { _ in
                let desk = TokenDesk(loop: try EventLoop(), tickets: TicketShelf())
                let other = try #require(Acceptor().accept(try made(by: NegotiateTokensTests.tokens(desk), nil)))
                for change in 0...2 {
                    let tokens = NegotiateTokensTests.tokens(desk)
                    var proof = try #require(Acceptor().accept(try made(by: tokens, nil)))
                    switch change {
                    case 0: proof = other
                    case 1: proof[proof.count - 1] ^= 1
                    default: proof = []
                    }
                    let failure = #expect(throws: TokenFailure.self) { try verified(by: tokens, proof) }
                    #expect(failure?.isRefusal == false)
                }
            }
        }
    }

    @Test func `log-ins of one credential share a ticket, until the secret changes`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { realm in
                let desk = TokenDesk(loop: try EventLoop(), tickets: TicketShelf())
                func logIn(secretNumber: UInt64) throws -> Int {
                    _ = try made(
                        by: NegotiateTokensTests.tokens(
                            desk, NegotiateTokensTests.identity(secretNumber: secretNumber)), nil)
                    return realm.requests.count
                }
                let counts = try [1, 1, 1, 2].map { try logIn(secretNumber: $0) }
                #expect(counts[1] == counts[0] && counts[2] == counts[0] && counts[3] > counts[0], "\(counts)")
            }
        }
    }

    @Test func `log-ins that wait for the same ticket share its refusal, and a later one tries again`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { realm in
                let loop = try EventLoop()
                let desk = TokenDesk(loop: loop, tickets: TicketShelf())
                var failures: [TokenFailure] = []
                let makers = (1...20).map { _ in
                    NegotiateTokensTests.tokens(desk, NegotiateTokensTests.identity("wrong"))
                }
                for maker in makers {
                    maker.make(received: nil) { if case .failure(let failure) = $0 { failures.append(failure) } }
                }
                runLoop(loop) { failures.count == 20 }
                #expect(failures.allSatisfy { $0.isRefusal }, "\(failures)")
                let refused = { realm.requests.filter { $0.contains("PREAUTH_FAILED") }.count }
                #expect(refused() == 1)
                let later = NegotiateTokensTests.tokens(desk, NegotiateTokensTests.identity("wrong"))
                let failure = #expect(throws: TokenFailure.self) { try made(by: later, nil) }
                #expect(failure?.isRefusal == true && failure?.description.contains("wrong") == false)
                #expect(refused() == 2)
                // A new secret is tried at once.
                let right = NegotiateTokensTests.tokens(desk, NegotiateTokensTests.identity(secretNumber: 2))
                #expect(throws: Never.self) { try made(by: right, nil) }
            }
        }
    }

    @Test func `what the center does not know of the credentials is no refusal`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { realm in
                let desk = TokenDesk(loop: try EventLoop(), tickets: TicketShelf())
                let unknownService = NegotiateTokensTests.tokens(desk, host: "unknown.example")
                let service = #expect(throws: TokenFailure.self) { try made(by: unknownService, nil) }
                #expect(service?.isRefusal == false && service?.description.contains("not found") == true)
                let unknownUser = NegotiateTokensTests.tokens(desk, NegotiateTokensTests.identity(user: "nobody"))
                let user = #expect(throws: TokenFailure.self) { try made(by: unknownUser, nil) }
                #expect(user?.isRefusal == true)
                realm.stop()
                let silent = NegotiateTokensTests.tokens(desk, NegotiateTokensTests.identity(secretNumber: 3))
                let nobody = #expect(throws: TokenFailure.self) { try made(by: silent, nil) }
                #expect(nobody?.isRefusal == false && nobody?.description.contains("KDC") == true)
            }
        }
    }

    @Test func `a center that says nothing costs its callers a time limit, and other credentials nothing`() async {
        await #expect(processExitsWith: .success) {
            try withRealm { realm in
                let loop = try EventLoop()
                let desk = TokenDesk(loop: loop, tickets: TicketShelf())
                let silent = try SilentCenter()
                try silent.become("SILENT.EXAMPLE", in: "\(realm.directory)/krb5.conf")
                var failures: [TokenFailure] = []
                let makers = (1...3).map { _ in
                    ConnectionTokens(
                        .negotiate(NegotiateTokensTests.identity(user: "fleet@SILENT.EXAMPLE")), host: "o.example",
                        endPointHash: nil, desk: desk, timeout: .milliseconds(200))
                }
                for maker in makers {
                    maker.make(received: nil) { if case .failure(let failure) = $0 { failures.append(failure) } }
                }
                let other = NegotiateIdentity(
                    credential: "other", secretNumber: 2,
                    source: .password(Array("open sesame".utf8), principal: "fleet"))
                #expect(throws: Never.self) { try made(by: NegotiateTokensTests.tokens(desk, other), nil) }
                runLoop(loop) { failures.count == 3 }
                #expect(failures == [.timedOut, .timedOut, .timedOut])
                // Ends although a thread still waits for the center.
                desk.tickets.close()
                let late = NegotiateTokensTests.tokens(desk, other)
                #expect(throws: TokenFailure.overloaded) { try made(by: late, nil) }
            }
        }
    }
}

/// Accepts connections, takes datagrams, and answers nothing.
private final class SilentCenter {
    private let sockets: [CInt]
    let port: UInt16

    init() throws {
        port = FreePort.take()
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        sockets = [SOCK_STREAM, SOCK_DGRAM].map { socket(AF_INET, CInt($0.rawValue), 0) }
        for socket in sockets {
            let status = unsafe withUnsafePointer(to: &address) {
                unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            try #require(status == 0)
        }
        try #require(listen(sockets[0], 16) == 0)
    }

    deinit { for socket in sockets { close(socket) } }

    /// Adds itself to a `krb5.conf` as the center of another realm.
    func become(_ realm: String, in path: String) throws {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        try text.replacing("[realms]", with: "[realms]\n  \(realm) = {\n    kdc = 127.0.0.1:\(port)\n  }")
            .write(toFile: path, atomically: true, encoding: .utf8)
    }
}

/// Waits for a token on the loop of its desk.
private func made(by tokens: ConnectionTokens, _ received: [UInt8]?) throws -> [UInt8] {
    var result: Result<[UInt8], TokenFailure>?
    tokens.make(received: received) { result = $0 }
    runLoop(tokens.loop) { result != nil }
    return try #require(result).get()
}

private func verified(by tokens: ConnectionTokens, _ proof: [UInt8]) throws {
    var result: Result<Void, TokenFailure>?
    tokens.verify(proof) { result = $0 }
    runLoop(tokens.loop) { result != nil }
    try #require(result).get()
}

/// Turns the loop until `condition` holds, at most 30 seconds.
private func runLoop(_ loop: EventLoop, until condition: @escaping () -> Bool) {
    var hasTimedOut = false
    let limit = Timer {
        hasTimedOut = true
        loop.stop()
    }
    loop.timers.schedule(limit, after: .seconds(30))
    func check() {
        guard !condition() else { return loop.stop() }
        loop.afterTurn(check)
    }
    loop.afterTurn(check)
    loop.run()
    loop.timers.cancel(limit)
    #expect(!hasTimedOut, "the loop waited in vain")
}

/// Runs `body` in a realm with a user and a service, whose acceptor is this process. Ends the process with an error if it throws.
private func withRealm(_ body: (KerberosRealm) throws -> Void) throws {
    let directory = try makeTemporaryDirectory("larder-realm")
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let realm = try KerberosRealm(in: directory)
    defer { realm.stop() }
    try realm.add("fleet", password: "\"open sesame\"")
    try realm.add("HTTP/origin.example")
    let keytab = try realm.keytab("service", of: "HTTP/origin.example")
    for (name, value) in realm.environment { unsafe setenv(name, value, 1) }
    unsafe setenv("KRB5_KTNAME", "FILE:\(keytab)", 1)
    try body(realm)
}

private func bytes(hex text: String) -> [UInt8] {
    let digits = text.filter(\.isHexDigit)
    return stride(from: 0, to: digits.count, by: 2).map { offset in
        let start = digits.index(digits.startIndex, offsetBy: offset)
        return UInt8(digits[start..<digits.index(start, offsetBy: 2)], radix: 16)!
    }
}
