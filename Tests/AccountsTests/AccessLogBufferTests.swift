import Accounts
import Authentication
import EventLoop
import Foundation
import Forwarding
import JSON
import Testing

@Suite("The access log: what a worker writes")
struct AccessLogBufferTests {
    /// Writes the line of one request. `change` is made while it is under way.
    private func line(_ change: (inout Account) -> Void) throws -> JSONValue {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
        defer { _ = unsafe unlink(path) }
        let sink = AccessLogSink(.file(path))
        try sink.start()
        let buffer = AccessLogBuffer(
            sink: sink, counters: Counters(), loop: try EventLoop(), worker: 3,
            ids: RequestIDText(SipHash(key: (1, 2))))
        var account = buffer.opened()
        account.begunAt = buffer.now
        change(&account)
        buffer.append(account, client: nil, listener: nil)
        buffer.flush()
        sink.stop()
        return try JSONValue(parsing: Array(Data(contentsOf: URL(fileURLWithPath: path))).dropLast())
    }

    @Test(arguments: [3600, -3600]) func `a wall clock that is set meanwhile does not change how long a request took`(
        _ seconds: Int64
    ) throws {
        // What the clock said when the request began is so much before, or behind, what it says now.
        let line = try line {
            $0.startedAt -= seconds * 1_000_000
            usleep(2000)
        }
        let took = try #require(line["duration_us"]?.integer)
        #expect(took >= 2000 && took < 3_600_000_000)
    }

    @Test func `the ID is that of the account`() throws {
        var id: RequestID?
        let line = try line { id = $0.id }
        #expect(id == RequestID(before: 3).next)
        #expect(line["id"]?.text == id.map { RequestIDText(SipHash(key: (1, 2))).text(of: $0) })
        #expect(line["tunnel"] == nil)
    }
}
