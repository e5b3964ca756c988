import Testing

@testable import Storage

@Suite("Bodies that are compared")
struct BodyComparingTests {
    private let memory = MemoryTier(budget: 64 << 20, shards: 1, objectMax: 32 << 20, variantsPerKeyMax: 1)

    private func body(_ bytes: [UInt8], announced: Bool = true) throws -> Body {
        let body = try #require(memory.makeBody(expectedLength: announced ? bytes.count : nil))
        let result = unsafe bytes.withUnsafeBytes { unsafe body.append($0) }
        #expect(result == .appended && body.finish())
        return body
    }

    static let lengths = [0, 1, 4096, Body.blockBytes, 3 * Body.blockBytes + 1, 1_000_000]
    @Test(arguments: lengths) func `bodies have the same bytes, however they are divided`(_ length: Int) throws {
        let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let (one, other) = (try body(bytes), try body(bytes, announced: false))
        #expect(one.hasBytes(of: other) && other.hasBytes(of: one) && one.hasBytes(of: one))
        var read: [UInt8] = []
        #expect(unsafe one.readAll { unsafe read.append(contentsOf: $0) } && read == bytes)
        guard length > 0 else { return }
        var changed = bytes
        changed[length - 1] ^= 1
        #expect(try !one.hasBytes(of: body(changed)))
        #expect(try !one.hasBytes(of: body(bytes + [0])))
    }

    @Test func `what is too long, or still comes, is not compared`() throws {
        let long = [UInt8](repeating: 7, count: Body.comparedBytesMax + 1)
        #expect(try !body(long).hasBytes(of: body(long)))
        let growing = try #require(memory.makeBody(expectedLength: 1))
        #expect(try !growing.hasBytes(of: body([1])))
        growing.fail()
    }
}
