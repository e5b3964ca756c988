import Caching
import Message
import Testing

@Suite("The form in which stored responses outlive the process")
struct StoredFormTests {
    static let responses: [[String]] = [
        ["Cache-Control: max-age=60", "Date: \(date(-5))", "ETag: \"a\""],
        ["Cache-Control: s-maxage=5, stale-while-revalidate=30, stale-if-error=600", "Age: 3"],
        ["Cache-Control: no-cache, must-revalidate, proxy-revalidate", "Last-Modified: \(date(-9000))"],
        ["Cache-Control: public, immutable, no-transform, max-age=31536000", "Content-Encoding: gzip"],
        ["Cache-Control: private=\"X-Own, X-Two\", no-cache=\"X-Three\", max-age=9"],
        ["Expires: 0", "Vary: Accept-Encoding, Accept-Language", "Accept-Ranges: none"],
        ["Last-Modified: \(date(-100_000))", "X-eMPTY:", "x-Odd: \u{E9}", "Surrogate-Key: a b"],
        [],
    ]

    private static func read(_ bytes: [UInt8]) throws(StoredFormError) -> (Fields, CachedResponse, SecondaryKey) {
        var reader = StoredFormReader(bytes)
        let fields = try Fields(from: &reader)
        let cached = try CachedResponse(from: &reader, fields: fields)
        let key = try SecondaryKey(from: &reader)
        guard reader.isAtEnd else { throw StoredFormError() }
        return (fields, cached, key)
    }

    private static func written(_ fields: Fields, _ cached: CachedResponse, _ key: SecondaryKey) -> [UInt8] {
        var writer = StoredFormWriter()
        fields.write(to: &writer)
        cached.write(to: &writer)
        key.write(to: &writer)
        return writer.finish()
    }

    private static let request = fields("Accept-Encoding: gzip, br;q=0.5", "X-Twice: a", "X-Twice: b")

    @Test(arguments: responses, [UInt16(200), 206, 404])
    func `a value is read as it was written`(_ lines: [String], status: UInt16) throws {
        let fields = fields(lines)
        for cached in [
            stored(lines, status: status), stored(lines, status: status).outdated(),
            stored(lines, status: status).doubted(),
        ] {
            let key = SecondaryKey(cached.vary, request: Self.request)
            let read = try Self.read(Self.written(fields, cached, key))
            #expect(CachingTests.lines(read.0) == CachingTests.lines(fields))
            #expect(read.0.present == fields.present)
            #expect(read.1 == cached)
            #expect(read.2 == key)
            #expect(read.2.matches(Self.request) == key.matches(Self.request))
        }
    }

    @Test(arguments: [0, 99, 101, 199, 1000, .max] as [UInt16])
    func `a status that no response has is an error`(_ status: UInt16) {
        let form = Self.written(
            fields(Self.responses[0]), stored(Self.responses[0], status: status),
            SecondaryKey(.none, request: Self.request))
        #expect(throws: StoredFormError.self) { try Self.read(form) }
    }

    @Test func `a key with several names keeps each value, and that a field was absent`() throws {
        let vary = Vary(fields("Vary: X-Twice, X-Absent, Accept-Encoding"))
        let key = SecondaryKey(vary, request: Self.request)
        var writer = StoredFormWriter()
        key.write(to: &writer)
        var reader = StoredFormReader(writer.finish())
        let read = try SecondaryKey(from: &reader)
        #expect(read == key)
        #expect(read.matches(Self.request))
        #expect(!read.matches(fields("Accept-Encoding: gzip, br;q=0.5", "X-Twice: a", "X-Twice: b", "X-Absent: 1")))
        #expect(!read.matches(fields("Accept-Encoding: gzip, br;q=0.5", "X-Twice: a")))
    }

    @Test func `the codings that a client offered are read as they were written`() throws {
        let variant = try #require(CodingVariant(Vary(fields("Vary: Accept-Encoding")), request: Self.request))
        var writer = StoredFormWriter()
        variant.write(to: &writer)
        var reader = StoredFormReader(writer.finish())
        #expect(try CodingVariant(from: &reader) == variant)
        #expect(reader.isAtEnd)
    }

    @Test(arguments: responses) func `a form that is cut short anywhere is an error`(_ lines: [String]) throws {
        let cached = stored(lines)
        let whole = Self.written(fields(lines), cached, SecondaryKey(cached.vary, request: Self.request))
        for count in 0..<whole.count {
            #expect(throws: StoredFormError.self) { try Self.read(Array(whole[..<count])) }
        }
    }

    @Test func `any bytes are read or refused`() {
        var random = Seeded(7)
        let lines = Self.responses[4]
        let cached = stored(lines)
        let whole = Self.written(fields(lines), cached, SecondaryKey(cached.vary, request: Self.request))
        var refused = 0
        for _ in 0..<5000 {
            var bytes = whole
            for _ in 0...random.next() % 4 {
                bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
            }
            do throws(StoredFormError) {
                let (fields, cached, key) = try Self.read(bytes)
                // What was read can be written again.
                #expect(!Self.written(fields, cached, key).isEmpty)
            } catch { refused += 1 }
        }
        #expect(refused > 100)
    }
}
