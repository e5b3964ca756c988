import Caching
import Message
import Testing
import Transaction

@Suite("Who has proven access to which signed address")
struct ProvenAccessTests {
    private typealias Finding = ProvenAccess.Finding
    private static let noon = WallTime(secondsSinceEpoch: 1_800_000_000)
    private static let uri = Array("https://store.example/o?sig=1".utf8)
    private static let alice = ProvenAccess.Client.user("alice")
    private static let source = RedirectSource(Array("https://a.example/b".utf8), digest: ExpectedDigest(.sha256, []))

    private static func noted(
        _ finding: Finding = Finding(isProven: true), expiry: Int64? = nil
    ) -> ProvenAccess {
        var access = ProvenAccess { $0 }
        access.note(
            alice, uri, finding, expiry: expiry.map { noon + Seconds($0) }, now: .seconds(100), wallTime: noon)
        return access
    }
    private static func find(
        _ access: ProvenAccess, _ client: ProvenAccess.Client = alice, _ uri: [UInt8] = uri, after seconds: Int64 = 0
    ) -> Finding? {
        access.finding(client, uri, now: .seconds(100 + seconds), wallTime: noon + Seconds(seconds))
    }

    @Test func `a proof is of one client for one address`() {
        let access = Self.noted()
        #expect(Self.find(access) == Finding(isProven: true))
        #expect(Self.find(access, .user("bob")) == nil)
        #expect(Self.find(access, .local) == nil)
        #expect(Self.find(access, .address(IPAddress(v4: 1))) == nil)
        #expect(Self.find(access, Self.alice, Self.uri.dropLast() + [0x32]) == nil)
    }

    @Test func `a name that looks like an address and a part of a URI is not them`() {
        var access = ProvenAccess { $0 }
        access.note(
            .user("a"), Array("b".utf8), Finding(isProven: true), expiry: nil, now: .zero, wallTime: Self.noon)
        #expect(access.finding(.user("ab"), [], now: .zero, wallTime: Self.noon) == nil)
        #expect(access.finding(.user(""), Array("ab".utf8), now: .zero, wallTime: Self.noon) == nil)
    }

    @Test(arguments: [
        (60, 59, true), (60, 60, false), (3600, 899, true), (3600, 900, false), (0, 0, false), (-5, 0, false),
    ])
    func `it ends with the signature, and after 15 minutes`(_ expiry: Int64, _ after: Int64, _ isKnown: Bool) {
        #expect((Self.find(Self.noted(expiry: expiry), after: after) != nil) == isKnown)
    }

    @Test func `a signature without an expiry holds for 15 minutes`() {
        #expect(Self.find(Self.noted(), after: 899) != nil)
        #expect(Self.find(Self.noted(), after: 900) == nil)
    }

    @Test func `a proof keeps what the address stands for`() {
        var access = Self.noted(Finding(isProven: false, standsFor: Self.source))
        #expect(Self.find(access) == Finding(isProven: false, standsFor: Self.source))
        access.note(
            Self.alice, Self.uri, Finding(isProven: true), expiry: nil, now: .seconds(101), wallTime: Self.noon)
        #expect(Self.find(access) == Finding(isProven: true, standsFor: Self.source))
    }

    @Test func `the oldest proofs go first`() {
        var access = ProvenAccess(countMax: 2) { $0 }
        for number in 0..<3 as Range<UInt8> {
            access.note(
                Self.alice, [number], Finding(isProven: true), expiry: nil, now: .seconds(Int64(number)),
                wallTime: Self.noon)
        }
        #expect(Self.find(access, Self.alice, [0]) == nil)
        #expect(Self.find(access, Self.alice, [2]) != nil)
    }
}
