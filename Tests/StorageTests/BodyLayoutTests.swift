@testable import Storage
import Testing

@Suite("Body: the sizes and places of pages")
struct BodyLayoutTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let length: Int?
        let offset: Int
        let expected: BodyLayout.Page

        init(_ description: String, _ length: Int?, at offset: Int, _ index: Int, _ start: Int, _ capacity: Int) {
            testDescription = description
            self.length = length
            self.offset = offset
            expected = BodyLayout.Page(index: index, start: start, capacity: capacity)
        }
    }

    private static let KiB = 1024
    static let rows = [
        Row("one byte takes 64", 1, at: 0, 0, 0, 64),
        Row("64 bytes take 64", 64, at: 63, 0, 0, 64),
        Row("65 bytes take 128", 65, at: 64, 0, 0, 128),
        Row("256 KiB are one page", 256 * KiB, at: 256 * KiB - 1, 0, 0, 256 * KiB),
        Row("one byte more is a second page", 256 * KiB + 1, at: 256 * KiB, 1, 256 * KiB, 64),
        Row("and the first is whole", 256 * KiB + 1, at: 0, 0, 0, 256 * KiB),
        Row("unknown length begins with 4 KiB", nil, at: 0, 0, 0, 4 * KiB),
        Row("and doubles", nil, at: 4 * KiB, 1, 4 * KiB, 8 * KiB),
        Row("last byte of the second page", nil, at: 12 * KiB - 1, 1, 4 * KiB, 8 * KiB),
        Row("the sixth page", nil, at: 252 * KiB - 1, 5, 124 * KiB, 128 * KiB),
        Row("the seventh is whole", nil, at: 252 * KiB, 6, 252 * KiB, 256 * KiB),
        Row("and so are all that follow", nil, at: (252 + 256 * 9) * KiB, 15, (252 + 256 * 9) * KiB, 256 * KiB),
    ]

    @Test(arguments: rows) func `the size of a page depends on its place in the body`(_ row: Row) {
        #expect(BodyLayout(expectedLength: row.length).page(at: row.offset) == row.expected)
    }
}
