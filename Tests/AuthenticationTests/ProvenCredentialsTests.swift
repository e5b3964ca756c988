import Rules
import Authentication
import Message
import Testing

@Suite("Credentials that a connection has proven")
struct ProvenCredentialsTests {
    private static let alice = Identity(name: "alice", scheme: .basic, expiry: .seconds(160))
    private static let value = "Basic YWxpY2U6c2VjcmV0"

    /// Whether what was proven with `value` is in a request with these lines.
    private static func areIn(_ lines: [(FieldName, String)], second: Int = 100) throws -> Bool {
        let proven = try #require(ProvenCredentials(Array(value.utf8)[...], of: alice, SipHash(key: (1, 2))))
        var fields = Fields()
        for (name, value) in lines { fields.append(name, value) }
        return proven.areIn(fields.section, fields.bytes.span, now: .seconds(second))
    }

    static let rows: [(lines: [(FieldName, String)], areIn: Bool)] = [
        ([(.proxyAuthorization, value)], true), ([(.age, "b"), (.proxyAuthorization, value), (.date, "d")], true),
        ([], false), ([(.authorization, value)], false), ([(.proxyAuthorization, String(value.dropLast()))], false),
        ([(.proxyAuthorization, value + "A")], false), ([(.proxyAuthorization, "Basic ZXZlOnNlY3JldA==")], false),
        ([(.proxyAuthorization, "basic YWxpY2U6c2VjcmV0")], false), ([(.proxyAuthorization, "")], false),
        // Which of two counts is a question for the authenticator.
        ([(.proxyAuthorization, value), (.proxyAuthorization, value)], false),
        ([(.proxyAuthorization, value), (.proxyAuthorization, "Basic ZXZlOnNlY3JldA==")], false),
        ([(.proxyAuthorization, "Basic ZXZlOnNlY3JldA=="), (.proxyAuthorization, value)], false),
    ]
    @Test(arguments: rows.indices) func `the same bytes in the one line`(_ index: Int) throws {
        #expect(try Self.areIn(Self.rows[index].lines) == Self.rows[index].areIn)
    }

    @Test(arguments: [(0, true), (159, true), (160, false), (1000, false)])
    func `until the client must authenticate again`(_ second: Int, _ areIn: Bool) throws {
        #expect(try Self.areIn([(.proxyAuthorization, Self.value)], second: second) == areIn)
    }

    @Test func `an identity without an end is not kept`() {
        let (value, hash) = (Array(Self.value.utf8)[...], SipHash(key: (1, 2)))
        #expect(ProvenCredentials(value, of: Identity(name: "a", scheme: .basic), hash) == nil)
    }
}

extension VerifiedCredentialsTests {
    @Test func `a wait begins with the last failure that is allowed, and is counted once`() {
        var known = Self.make { $0.perSourceMax = 2 }
        let client = ip("192.0.2.1")
        var begun: [Bool] = []
        for second in 0..<4 {
            known.record(Self.wrong, isValid: false, client: client, now: .seconds(second))
            begun.append(known.takeBegunWait())
        }
        #expect(begun == [false, true, false, false])
        #expect(known.wait(of: client, as: nil, now: .seconds(4)) == .seconds(6))
        #expect(known.wait(of: client, as: nil, now: .seconds(10)) == nil)
        #expect(known.wait(of: ip("192.0.2.2"), as: nil, now: .seconds(4)) == nil)
        // The next window.
        for second in 10..<12 { known.record(Self.wrong, isValid: false, client: client, now: .seconds(second)) }
        let hasBegun = known.takeBegunWait()
        #expect(hasBegun)
    }
}
