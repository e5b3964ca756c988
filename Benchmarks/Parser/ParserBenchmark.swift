import Caching
import Framing
import Message

/// What the bytes of one request cost until its cache key is known: head parser, normalised URI, hash.
///
/// `ParserBenchmark short|browser parse|uri|key|all iterations` prints nanoseconds for each. Run under callgrind or
/// memcheck with two iteration counts, the difference is instructions and allocations for each (`run.sh`).
@main
struct ParserBenchmark {
    enum Part: String { case parse, uri, key, all }

    static let short = "GET http://127.0.0.1:1234/x/12345 HTTP/1.1\r\nHost: 127.0.0.1:1234\r\n\r\n"
    static let browser = [
        "GET http://www.example.com:8080/assets/js/app.3f2a9c.js?v=12 HTTP/1.1", "Host: www.example.com:8080",
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
        "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "Accept-Language: en-US,en;q=0.5",
        "Accept-Encoding: gzip, deflate", "Referer: http://www.example.com:8080/", "DNT: 1",
        "Upgrade-Insecure-Requests: 1", "Sec-Fetch-Dest: script", "Sec-Fetch-Mode: no-cors", "Priority: u=2",
        "X-Request-Id: 7", "", "",
    ].joined(separator: "\r\n")

    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let iterations = Int(arguments[3]), iterations > 0,
            let part = Part(rawValue: arguments[2])
        else {
            print("usage: ParserBenchmark short|browser parse|uri|key|all iterations")
            return
        }
        // Bytes of a read buffer lie behind the head, as in the server.
        let request = Array((arguments[1] == "short" ? short : browser).utf8)
        var head = RequestHead()
        var uri: [UInt8] = []
        let hasher = CacheKeyHasher(secret: (1, 2))
        let limits = Limits()
        var sum: UInt64 = 0
        parse(request.span, &head, limits)
        appendNormalisedURI(head.target, of: request.span, to: &uri)
        let clock = ContinuousClock()
        let elapsed = clock.measure {
            for _ in 0..<iterations {
                switch part {
                case .parse: parse(request.span, &head, limits)
                case .uri: normalise(head.target, request.span, &uri)
                case .key: sum &+= hasher.key(of: uri.span).low
                case .all:
                    parse(request.span, &head, limits)
                    normalise(head.target, request.span, &uri)
                    sum &+= hasher.key(of: uri.span).low
                }
            }
        }
        let nanoseconds = elapsed / .nanoseconds(1) / Double(iterations)
        print("\(request.count) bytes, \(head.fields.lines.count) fields, \(part): \(nanoseconds) ns (\(sum & 1))")
    }

    @inline(never)
    private static func normalise(_ target: RequestTarget, _ bytes: borrowing Span<UInt8>, _ uri: inout [UInt8]) {
        uri.removeAll(keepingCapacity: true)
        appendNormalisedURI(target, of: bytes, to: &uri)
    }

    @inline(never)
    private static func parse(_ bytes: borrowing Span<UInt8>, _ head: inout RequestHead, _ limits: Limits) {
        var progress = HeadProgress()
        do throws(FramingError) {
            let isWhole = try parseRequestHead(bytes, into: &head, progress: &progress, limits: limits)
            precondition(isWhole, "the request is not whole")
        } catch { preconditionFailure("the request is refused: \(error)") }
    }
}
