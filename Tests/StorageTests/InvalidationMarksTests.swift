import Storage
import Testing

@Suite("Marks of invalidated URLs (RFC 9111 §4.4)")
struct InvalidationMarksTests {
    @Test func `what was sent before a URL was invalidated is marked, and what was sent after is not`() {
        let marks = InvalidationMarks()
        let (one, other) = (StorageKey(high: 0, low: 1), StorageKey(high: 0, low: 2))
        let before = marks.last
        #expect(!marks.isMarked(one, after: before))
        marks.mark(one)
        #expect(marks.isMarked(one, after: before) && !marks.isMarked(one, after: marks.last))
        #expect(!marks.isMarked(other, after: before))
        let between = marks.last
        marks.mark(one)
        #expect(marks.isMarked(one, after: between))
    }

    @Test func `however many URLs are invalidated, none is missed`() {
        let marks = InvalidationMarks()
        let keys = (0..<20_000).map { StorageKey(high: $0, low: $0 &* 0x9E37_79B9_7F4A_7C15) }
        for key in keys { marks.mark(key) }
        #expect(keys.allSatisfy { marks.isMarked($0, after: 0) })
    }
}
