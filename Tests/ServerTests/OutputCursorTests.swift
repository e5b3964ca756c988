import Testing

@testable import Server

@Suite("Numbers in a head")
struct OutputCursorTests {
    static let numbers: [Int64] =
        [0, 1, 9, 10, 11, 99, 100, -1, -10, 86_400, .max, .min]
        + (1...18).flatMap { power -> [Int64] in
            let bound = (0..<power).reduce(Int64(1)) { value, _ in value * 10 }
            return [bound - 1, bound, bound + 1]
        }

    @Test(arguments: numbers) func `numbers are written as the standard library writes them`(_ number: Int64) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 8)
        defer { unsafe buffer.deallocate() }
        var cursor = unsafe OutputCursor(buffer)
        cursor.append("Age: ")
        cursor.append(decimal: number)
        cursor.append("!")
        #expect(unsafe String(decoding: cursor.bytes, as: UTF8.self) == "Age: \(number)!")
    }
}
