import Storage
import Testing

@testable import Server

@Suite("The sending of a body")
struct DeliveryTests {
    /// The last bytes of a partial body are published before the body is complete. A reader on another thread that had read them
    /// claimed the byte behind them, which ended the process.
    @Test func `a delivery that has read all bytes of a partial body is at no hole`() throws {
        let tier = MemoryTier(budget: 1 << 20, shards: 1, objectMax: 1 << 20, variantsPerKeyMax: 1)
        let body = try #require(tier.makeSparseBody(length: 100, heldMax: 100))
        let delivery = Delivery(passing: body, isChunked: false, trailers: nil)
        #expect(delivery.isAtHole)
        #expect(!delivery.advance(by: 100))
        #expect(body.state == .partial && delivery.lacksBytes)
        #expect(!delivery.isAtHole)
    }

    /// A large body whose length was not announced may be lost on the disk between its end and the moment when a client that has taken all of it is
    /// told. It is partial then, and stays so: the client was asked to look again for ever.
    @Test func `what is read to its end needs no more of the body, whatever became of it`() throws {
        let tier = MemoryTier(budget: 1 << 20, shards: 1, objectMax: 1 << 20, variantsPerKeyMax: 1)
        let body = try #require(tier.makeSparseBody(length: 100, heldMax: 100))
        #expect(TranscodedPiece(behind: 100, of: body)?.state == .complete)
        #expect(TranscodedPiece(behind: 0, of: body) == nil && TranscodedPiece(behind: 99, of: body) == nil)
        let growing = try #require(tier.makeBody(expectedLength: nil))
        #expect(TranscodedPiece(behind: 0, of: growing) == nil)
        growing.fail()
        #expect(TranscodedPiece(behind: 0, of: growing)?.state == .failed)
    }

    /// A page that was sent by reference can not be used again.
    @Test func `who came while a body was growing gets its pages copied, and later ones by reference`() throws {
        let tier = MemoryTier(budget: 4 << 20, shards: 1, objectMax: 1 << 20, variantsPerKeyMax: 1)
        let body = try #require(tier.makeBody(expectedLength: 300_000))
        let early = Delivery(passing: body, isChunked: false, trailers: nil)
        let bytes = [UInt8](repeating: 7, count: 300_000)
        guard case .appended = unsafe bytes.withUnsafeBytes({ unsafe body.append($0) }) else {
            Issue.record("the tier has room")
            return
        }
        let isWhole = body.finish()
        #expect(isWhole)
        let late = Delivery(passing: body, isChunked: false, trailers: nil)
        #expect(!early.sendsByReference)
        #expect(late.sendsByReference)
    }
}
