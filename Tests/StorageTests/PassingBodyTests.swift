import Glibc
import Storage
import Testing

@Suite("Body: passed on only")
struct PassingBodyTests {
    private static let window = 256 << 10
    let tier = MemoryTier(budget: 8 << 20, shards: 1, objectMax: 1 << 20, variantsPerKeyMax: 1)
    let counter = Counter()

    private func body(_ length: Int?) -> Body { tier.makeWindow(expectedLength: length, window: Self.window) }

    // MARK: bytes

    @Test func `a short body that arrived whole is read without attaching, and takes only the memory that it needs`() {
        let body = body(1000)
        #expect(body.append(pattern(0..<1000)) == .appended && body.finish())
        #expect(body.state == .complete && body.length == 1000)
        #expect(body.bytes(vectorCount: 1) == pattern(0..<1000))
        #expect(tier.statistics.usedBytes < 1600)
    }

    @Test func `an empty body has no bytes`() {
        let body = body(0)
        #expect(body.finish() && body.bytes().isEmpty && body.length == 0)
    }

    @Test func `lent bytes are read in place, and copied if the reader leaves some`() throws {
        let body = body(3000)
        let reader = try #require(body.attach(at: 0))
        let bytes = pattern(0..<3000)
        unsafe bytes.withUnsafeBytes { bytes in
            let result = unsafe body.append(lending: bytes) {
                #expect(unsafe body.address(of: 0) == bytes.baseAddress)
                body.advance(reader, to: 1000)
                #expect(unsafe body.address(of: 1000) == bytes.baseAddress! + 1000)
            }
            #expect(result == .appended)
            #expect(unsafe body.address(of: 1000) != bytes.baseAddress! + 1000)
        }
        #expect(body.bytes(from: 1000) == pattern(1000..<3000))
        #expect(body.bytes(from: 999).isEmpty)
        #expect(body.finish())
    }

    @Test func `kept bytes are sent before lent bytes, in one call`() throws {
        let body = body(nil)
        _ = try #require(body.attach(at: 0))
        #expect(body.append(pattern(0..<10)) == .appended)
        unsafe pattern(10..<30).withUnsafeBytes { bytes in
            _ = unsafe body.append(lending: bytes) { #expect(body.bytes() == pattern(0..<30)) }
        }
        #expect(body.append(pattern(30..<40)) == .appended)
        #expect(body.bytes(vectorCount: 1) == pattern(0..<40))
    }

    @Test func `while bytes are lent, more can be appended behind those that the reader has taken`() throws {
        let body = body(nil)
        let reader = try #require(body.attach(at: 0))
        unsafe pattern(0..<20).withUnsafeBytes { bytes in
            _ = unsafe body.append(lending: bytes) {
                body.advance(reader, to: 20)
                #expect(body.append(pattern(20..<30)) == .appended)
            }
        }
        #expect(body.bytes(from: 20) == pattern(20..<30))
    }

    @Test(arguments: 0..<20) func `all bytes come through in order, however they are written and taken`(_ seed: Int)
        throws
    {
        var random = SeededGenerator(seed: UInt64(seed))
        let length = Int.random(in: 0...3 << 20, using: &random)
        do {
            let body = body(seed % 2 == 0 ? length : nil)
            let reader = try #require(body.attach(at: 0))
            var taken = 0
            func take() {
                guard body.length > taken, Int.random(in: 0..<3, using: &random) > 0 else { return }
                let bytes = body.bytes(from: taken)
                #expect(bytes == pattern(taken..<body.length))
                taken += Int.random(in: 1...bytes.count, using: &random)
                body.advance(reader, to: taken)
            }
            while body.length < length || taken < length {
                let start = body.length
                let count = min(length - start, Int.random(in: 1...80_000, using: &random))
                if count > 0, !body.writerShouldPause {
                    let bytes = pattern(start..<start + count)
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: #expect(body.append(bytes) == .appended)
                    case 1: _ = try #require(body.read(bytes, hint: 64 << 10))
                    default: unsafe bytes.withUnsafeBytes { _ = unsafe body.append(lending: $0, while: take) }
                    }
                }
                take()
                #expect(tier.statistics.usedBytes < 2 * (Self.window + 80_000) + 4096)
            }
            #expect(body.finish())
            #expect(tier.statistics.usedBytes < 20_000, "a reader that has caught up leaves next to nothing")
            body.detach(reader)
        }
        #expect(tier.statistics.usedBytes == 0)
    }

    @Test func `more bytes than expected are refused, fewer are a failure`() throws {
        let body = body(100)
        unsafe pattern(0..<101).withUnsafeBytes { bytes in
            #expect(unsafe body.append(lending: bytes) { Issue.record("nothing was lent") } == .tooLarge)
        }
        #expect(body.append(pattern(0..<101)) == .tooLarge)
        #expect(body.append(pattern(0..<99)) == .appended)
        #expect(!body.finish() && body.state == .failed)
    }

    // MARK: the window

    @Test func `the writer pauses one window ahead, and is woken when the reader has taken bytes`() throws {
        let body = body(nil)
        #expect(body.append(pattern(0..<Self.window - 1)) == .appended)
        #expect(!body.writerShouldPause)
        #expect(body.append([1]) == .appended)
        #expect(body.writerShouldPause, "a reader who is yet to come is waited for")
        let reader = try #require(body.attach(at: 0))
        body.awaitRoom(counter.wake)
        #expect(counter.count == 0)
        body.advance(reader, to: 1)
        #expect(counter.count == 1 && !body.writerShouldPause)
        body.advance(reader, to: 2)
        #expect(counter.count == 1)
        body.awaitRoom(counter.wake)
        #expect(counter.count == 2)
    }

    @Test func `if the reader leaves, the writer continues and no byte is kept`() throws {
        let body = body(nil)
        let reader = try #require(body.attach(at: 0))
        #expect(body.append(pattern(0..<Self.window)) == .appended)
        body.awaitRoom(counter.wake)
        #expect(body.hasReaders)
        body.detach(reader)
        #expect(counter.count == 1 && !body.hasReaders)
        let used = tier.statistics.usedBytes
        #expect(body.append(pattern(0..<4 << 20)) == .appended)
        #expect(!body.writerShouldPause && tier.statistics.usedBytes == used)
        #expect(body.finish() && body.length == Self.window + 4 << 20)
    }

    @Test func `a passing body has one reader, at its beginning`() throws {
        let body = body(nil)
        let reader = try #require(body.attach(at: 0))
        #expect(body.attach(at: 0) == nil)
        body.detach(reader)
        #expect(body.attach(at: 0) == nil)
    }

    // MARK: waits

    @Test func `a waiting reader is woken once by the byte or the end, or never if it cancels`() throws {
        let body = body(nil)
        #expect(body.append([1, 2]) == .appended)
        #expect(body.await(beyond: 1, counter.wake) == nil)
        #expect(body.await(beyond: 2, counter.wake) != nil)
        #expect(body.append([3]) == .appended && counter.count == 1)
        #expect(body.append([4]) == .appended && counter.count == 1)
        body.cancel(try #require(body.await(beyond: 4, counter.wake)))
        #expect(body.append([5]) == .appended && counter.count == 1)
        #expect(body.await(beyond: 5, counter.wake) != nil)
        body.fail()
        #expect(counter.count == 2 && body.state == .failed)
        #expect(body.await(beyond: 5, counter.wake) == nil)
        #expect(body.bytes() == [1, 2, 3, 4, 5])
    }

    // MARK: the store

    @Test func `a passing body is never stored, never refused, and evicts nothing`() throws {
        let tier = MemoryTier(budget: 100_000, shards: 1, objectMax: 1 << 20, variantsPerKeyMax: 1)
        #expect(tier.store("a", bytes: 90_000) != nil)
        let body = tier.makeWindow(expectedLength: nil, window: Self.window)
        #expect(!tier.insert(TestRecord("b", body: body)))
        #expect(body.append(pattern(0..<200_000)) == .appended)
        #expect(body.bytes() == pattern(0..<200_000))
        #expect(tier.lookup("a").count == 1 && tier.statistics.evictions == 0)
        #expect(tier.statistics.usedBytes > 290_000, "what it holds is counted")
    }
}

extension Body {
    /// Where the byte at an offset lies.
    fileprivate func address(of offset: Int) -> UnsafeRawPointer? {
        var vector = unsafe iovec()
        let used = unsafe withUnsafeMutablePointer(to: &vector) {
            unsafe vectors(from: offset, limit: 1, into: UnsafeMutableBufferPointer(start: $0, count: 1))
        }
        return unsafe used == 0 ? nil : UnsafeRawPointer(vector.iov_base)
    }
}
