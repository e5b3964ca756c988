import Testing

@Suite("Content of the origin")
struct ContentTests {
    @Test func `a byte tells where it came from`() {
        let resource = Resource(number: 7)
        let start = resource.start(3, .en)
        let piece = Array(Noise.bytes[start + 100..<start + 132])
        #expect(Noise.firstDifference(piece[...], from: start + 100) == nil)
        #expect(Noise.firstDifference(piece[...], from: start + 101) != nil)
        #expect(Resource(path: resource.path) == resource)
        #expect(Noise.position(of: piece[...]) == (start + 100) % Noise.period)
    }
}
