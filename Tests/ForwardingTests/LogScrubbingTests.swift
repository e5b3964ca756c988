import Forwarding
import Testing

@Suite("Secrets stay out of the log")
struct LogScrubbingTests {
    static let rows: [(target: String, logged: String)] = [
        ("http://a/", "http://a/"),
        ("http://a/token=1", "http://a/token=1"),
        ("http://a/?x=1&y=2", "http://a/?x=1&y=2"),
        ("http://a/?token=abc", "http://a/?token=***"),
        ("http://a/?x=1&Access_Token=abc&y=2", "http://a/?x=1&Access_Token=***&y=2"),
        ("http://a/?X-Amz-Signature=f00&X-Amz-Date=1", "http://a/?X-Amz-Signature=***&X-Amz-Date=1"),
        ("http://a/?password", "http://a/?password"),
        ("http://a/?password=", "http://a/?password=***"),
        ("http://a/?tokens=1", "http://a/?tokens=1"),
        ("http://a/?&&sig=1&", "http://a/?&&sig=***&"),
        ("http://a/?", "http://a/?"),
    ]

    @Test(arguments: rows) func `the values of query parameters with names of credentials are replaced`(
        _ row: (target: String, logged: String)
    ) {
        let bytes = Array(row.target.utf8)
        var logged: [UInt8] = []
        LogScrubbing.append(bytes.span) { logged.append($0) }
        #expect(String(decoding: logged, as: UTF8.self) == row.logged)
    }
}
