internal import Glibc

/// Fetches one hole of a partial body (`Body.claim`): the one writer of the bytes from `position` to the end of `range`.
/// One thread at a time; other fills may write elsewhere in the same body at the same moment.
///
/// What it has written is there for everybody at once. What it has not is free again when it ends, in whatever way:
/// those who wait for it look again, and the first of them claims what is left.
@safe package final class Fill: @unchecked Sendable {
    package let body: Body
    /// The hole, as offsets in the body. It ends earlier after `shrink`.
    package private(set) var range: Range<Int>
    /// Offset of the next byte to be written.
    package private(set) var position: Int

    init(_ range: Range<Int>, of body: Body) {
        self.body = body
        self.range = range
        position = range.lowerBound
    }

    deinit { abandon() }

    /// Appends all of the bytes or none. `.tooLarge`: they would go beyond the hole.
    package func append(_ bytes: UnsafeRawBufferPointer) -> Body.AppendResult { .tooLarge }

    /// Room to read(2) into, at most `hint` bytes, often less: up to the end of a page. Follow with `commit`.
    /// nil: as `.full` of `append`, or the hole is filled.
    package func writable(_ hint: Int) -> UnsafeMutableRawBufferPointer? { nil }

    /// Publishes `count` bytes written into what `writable` gave.
    package func commit(_ count: Int) {}

    /// The origin gives less than was claimed: the hole ends at `end`, the rest is free. No effect where it ends there
    /// already, or before.
    package func shrink(to end: Int) {}

    /// No more bytes follow. False: fewer came than the hole has; the rest of it is free again.
    package func finish() -> Bool { false }

    /// Ends it: what was written stays, the rest of the hole is free. No effect on a fill that has ended.
    package func abandon() {}
}
