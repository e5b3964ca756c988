import Caching
import Message
import Testing

@Suite("RFC 9211 The Cache-Status HTTP Response Header Field")
struct CacheStatusTests {
    func rendered(_ outcome: CacheStatus.Outcome, _ change: (inout CacheStatus) -> Void = { _ in }) -> String {
        var status = CacheStatus(outcome)
        change(&status)
        var bytes: [UInt8] = []
        status.append(to: &bytes)
        return text(bytes)
    }

    @Test func `a hit says hit and its ttl`() {
        #expect(rendered(.hit) == "larder; hit")
        #expect(rendered(.hit) { $0.ttl = seconds(376) } == "larder; hit; ttl=376")
        #expect(rendered(.hit) { $0.ttl = seconds(-412) } == "larder; hit; ttl=-412")
        #expect(rendered(.hit) { $0.ttl = .zero } == "larder; hit; ttl=0")
    }

    static let tokens: [CacheStatus.ForwardReason: String] = [
        .bypass: "bypass", .method: "method", .uriMiss: "uri-miss", .varyMiss: "vary-miss", .miss: "miss",
        .request: "request", .stale: "stale", .partial: "partial",
    ]
    @Test(arguments: CacheStatus.ForwardReason.allCases)
    func `§2.2: forwarded, and why`(_ reason: CacheStatus.ForwardReason) throws {
        #expect(rendered(.forwarded(reason)) == "larder; fwd=\(try #require(Self.tokens[reason]))")
    }

    @Test func `the longest member fits into its room`() {
        let longest = rendered(.forwarded(.varyMiss)) {
            $0.forwardStatus = 599
            $0.ttl = Seconds(.min)
            $0.isStored = true
            $0.isCollapsed = true
            $0.key = Array(repeating: 0xFF, count: 500)
            $0.detail = String(repeating: "\u{1}", count: 500)
        }
        #expect(longest.hasSuffix("; detail=\"" + String(repeating: "%01", count: 500) + "\""))
        for reason in NotStoredReason.allCases {
            let passedOn = [UInt8](capacity: CacheStatus.passedOnLengthMax) {
                CacheStatus.appendPassedOn(.varyMiss, status: 599, notStored: reason, to: &$0)
            }
            #expect(text(passedOn) == "larder; fwd=vary-miss; fwd-status=599; detail=\(reason.token)")
        }
    }

    @Test func `all parameters in their order`() {
        let all = rendered(.forwarded(.uriMiss)) {
            $0.forwardStatus = 200
            $0.ttl = seconds(1)
            $0.isStored = true
            $0.isCollapsed = true
            $0.key = Array("http://a/".utf8)
            $0.detail = "no-store"
        }
        #expect(
            all == "larder; fwd=uri-miss; fwd-status=200; ttl=1; stored; collapsed; key=\"http://a/\"; detail=no-store")
    }

    @Test func `RFC 9651: strings hold visible ASCII only, integers fifteen digits`() {
        #expect(
            rendered(.hit) { $0.key = Array("a\"b\\c\u{E9}\r\n d".utf8) }
                == "larder; hit; key=\"a\\\"b\\\\c%C3%A9%0D%0A d\"")
        #expect(rendered(.hit) { $0.detail = "two words" } == "larder; hit; detail=\"two words\"")
        #expect(rendered(.hit) { $0.detail = "" } == "larder; hit; detail=\"\"")
        #expect(rendered(.hit) { $0.detail = "7up" } == "larder; hit; detail=\"7up\"")
        #expect(rendered(.hit) { $0.ttl = seconds(.max) } == "larder; hit; ttl=999999999999999")
        #expect(rendered(.hit) { $0.ttl = seconds(.min) } == "larder; hit; ttl=-999999999999999")
    }

    @Test func `§2.2: the decisions of RFC 9111 §4 have their reasons`() {
        for reason in ValidateReason.allCases {
            let isClients = reason.rawValue.hasPrefix("request")
            #expect(reason.forwardReason == (isClients ? .request : .stale), "\(reason)")
        }
        let reasons: [CacheStatus.ForwardReason] = [.method, .method, .request, .request, .request, .bypass, .request]
        #expect(FetchReason.allCases.map(\.forwardReason) == reasons)
    }

    @Test func `the member is appended to the bytes`() {
        var bytes = Array("Cache-Status: ".utf8)
        CacheStatus(.hit).append(to: &bytes)
        #expect(text(bytes) == "Cache-Status: larder; hit")
    }
}
