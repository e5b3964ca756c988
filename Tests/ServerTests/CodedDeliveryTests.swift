import Compression
import Storage
import Testing

@testable import Server

@Suite("A stored body on its way in another coding")
struct CodedDeliveryTests {
    @Test(arguments: [0, 1, 65_536, 400_000]) func `chunks and their end (RFC 9112 §7.1)`(_ length: Int) throws {
        let content = text(length)
        let delivery = CodedDelivery(body: try body(gzip(content)), .inflate(InflateBounds()), isChunked: true)
        let (wire, last) = drain(delivery)
        #expect(last == .finished)
        #expect(unchunked(wire) == content)
    }

    @Test func `without chunks the content is alone`() throws {
        let content = text(400_000)
        let delivery = CodedDelivery(body: try body(gzip(content)), .inflate(InflateBounds()), isChunked: false)
        #expect(drain(delivery).wire == content)
    }

    @Test func `it waits for a growing body and tells it how far it is`() throws {
        let content = text(50_000)
        let growing = try body([], isComplete: false)
        let delivery = CodedDelivery(body: growing, .compress(level: 1), isChunked: true)
        #expect(growing.readerCount == 1)
        #expect(append(content, to: growing))
        var (wire, last) = drain(delivery)
        #expect(last == .wait)
        #expect(delivery.offset == content.count)
        #expect(growing.finish())
        let rest = drain(delivery)
        #expect(rest.last == .finished)
        wire += rest.wire
        #expect(try inflated(try #require(unchunked(wire))) == content)
        delivery.end(cancelling: true)
        #expect(growing.readerCount == 0)
    }

    @Test func `a broken body ends without a last chunk`() throws {
        let wire = gzip(text(100_000))
        let delivery = CodedDelivery(
            body: try body(Array(wire.dropLast(9))), .inflate(InflateBounds()), isChunked: true)
        let (out, last) = drain(delivery)
        #expect(last == .broken)
        #expect(!out.isEmpty)
        #expect(unchunked(out) == nil)
    }

    @Test func `what it has dealt with may be let go`() throws {
        let growing = try body([], isComplete: false)
        let delivery = CodedDelivery(body: growing, .compress(level: 1), isChunked: true)
        #expect(append(text(1 << 20), to: growing))
        growing.abandonStorage(window: 1 << 16)
        #expect(growing.writerShouldPause)
        #expect(drain(delivery).last == .wait)
        #expect(!growing.writerShouldPause)
        delivery.end(cancelling: true)
    }

    @Test func `a growing body whose beginning is gone is broken`() throws {
        let growing = try body([], isComplete: false)
        let reader = try #require(growing.attach(at: 0))
        #expect(append(text(1 << 20), to: growing))
        growing.abandonStorage(window: 1 << 20)
        growing.advance(reader, to: 1 << 20)
        #expect(drain(CodedDelivery(body: growing, .compress(level: 1), isChunked: true)).last == .broken)
        growing.detach(reader)
    }

    private func drain(_ delivery: CodedDelivery) -> (wire: [UInt8], last: CodedDelivery.Next) {
        var wire: [UInt8] = []
        while true {
            let start = wire.count
            let next = delivery.next(into: &wire)
            #expect(wire.count - start <= 64 << 10 + 32)
            guard case .queued = next else { return (wire, next) }
        }
    }

    /// nil: the last chunk is missing, or something is behind it.
    private func unchunked(_ wire: [UInt8]) -> [UInt8]? {
        var content: [UInt8] = []
        var rest = wire[...]
        while let end = rest.firstIndex(of: 0x0D) {
            guard let size = Int(String(decoding: rest[..<end], as: UTF8.self), radix: 16) else { return nil }
            rest = rest[(end + 2)...]
            if size == 0 { return rest.elementsEqual([0x0D, 0x0A]) ? content : nil }
            content += rest.prefix(size)
            rest = rest.dropFirst(size + 2)
        }
        return nil
    }
}
