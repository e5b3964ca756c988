import Forwarding
import Testing
import Transaction

/// Withholds the last bytes, or says at the end that the content must not be completed.
private final class Withholding: ContentFilter {
    let name: String
    let count: Int
    let refusal: Refusal?
    /// Bytes beyond these go no further.
    let bytesMax: Int
    private var held: [UInt8] = []
    private var taken = 0

    init(_ name: String, _ count: Int, _ refusal: Refusal? = nil, bytesMax: Int = .max) {
        (self.name, self.count, self.refusal, self.bytesMax) = (name, count, refusal, bytesMax)
    }

    func take(_ piece: UnsafeRawBufferPointer, _ pass: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        taken += piece.count
        guard taken <= bytesMax else { return false }
        unsafe held.append(contentsOf: piece)
        guard held.count > count else { return true }
        let next = Array(name.utf8) + held.dropLast(count)
        held.removeFirst(held.count - count)
        return unsafe next.withUnsafeBytes { unsafe pass($0) }
    }

    func finish(_ pass: (UnsafeRawBufferPointer) -> Bool) -> Refusal? {
        guard refusal == nil else { return refusal }
        _ = unsafe (Array(name.utf8) + held).withUnsafeBytes { unsafe pass($0) }
        return nil
    }
}

/// What comes out of the filters: in pieces, and why it must not be completed.
private func outcome(
    _ filters: [Withholding], _ pieces: [String], wanted: Int = .max
) -> (passed: [String], mayGoOn: [Bool], refusal: Refusal?) {
    var chain = ContentFilters()
    for filter in filters { chain = chain.appending(filter) }
    var passed: [String] = []
    func pass(_ bytes: UnsafeRawBufferPointer) -> Bool {
        unsafe passed.append(String(decoding: bytes, as: UTF8.self))
        return passed.count < wanted
    }
    let mayGoOn = pieces.map { piece in
        unsafe Array(piece.utf8).withUnsafeBytes { unsafe chain.take($0) { unsafe pass($0) } }
    }
    let refusal = unsafe chain.finish { unsafe pass($0) }
    return (passed, mayGoOn, refusal)
}

@Suite("Filters of content") struct ContentFilterTests {
    @Test func `without a filter everything goes on as it comes`() {
        #expect(outcome([], ["ab", "c"]).passed == ["ab", "c"])
    }

    @Test func `content goes through the filters in their order, and what one withholds goes through the others`() {
        let (passed, _, refusal) = outcome([Withholding("1", 2), Withholding("2", 1)], ["abcd", "ef"])
        // "1ab" and "1cd" come from the first filter, and "1ef" at the end; the second withholds one byte each time.
        #expect(passed == ["21a", "2b1c", "2d1e", "2f"])
        #expect(refusal == nil)
    }

    @Test func `the first filter that refuses decides, and nothing behind it is passed on`() {
        let (passed, _, refusal) = outcome(
            [Withholding("", 2), Withholding("", 9, .digestMismatch), Withholding("", 9, .credentialHidden)], ["abc"])
        #expect(passed.isEmpty && refusal == .digestMismatch)
    }

    @Test func `a filter can end the content, and so can whoever it goes to`() {
        #expect(outcome([Withholding("", 0, bytesMax: 3)], ["ab", "cd"]).mayGoOn == [true, false])
        #expect(outcome([Withholding("", 0)], ["ab", "cd"], wanted: 2).mayGoOn == [true, false])
    }
}
