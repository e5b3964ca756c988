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
}
