/// Partial bodies: of known length, with some ranges of bytes there and others not (RFC 9110 §14, RFC 9111 §3.3).
///
///     makeSparseBody ──▶ partial ──the last hole is filled──▶ complete        growing ──makePartial──▶ partial
///
/// Who needs a byte that is not there claims the hole around it and fills it; those who need it as well wait.
extension Body {
    /// What stands at an offset of a body, for somebody who needs the byte there.
    package enum Gap {
        /// Published, up to this offset.
        case available(end: Int)
        /// Somebody fetches it: `await(beyond:)` the offset, then look again.
        case awaited
        /// Nobody has it: the caller fetches it now.
        case missing(Fill)
        /// Nobody has it, and it can not be kept here: the body failed, or is in more pieces than are counted. Fetch it
        /// without storing it.
        case unavailable
    }

    /// Looks at `offset`, and where nothing is and nobody fetches, claims the hole: from `offset` up to the next bytes
    /// that are there or fetched by others, or to `limit`.
    package func claim(at offset: Int, limit: Int) -> Gap { .unavailable }

    /// End of the bytes that are there without a hole from `offset` on; `offset` where none is.
    package func available(from offset: Int) -> Int { max(offset, length) }

    /// The bytes that are there, in order; never adjacent to each other.
    package var extents: [Range<Int>] { length > 0 ? [0..<length] : [] }

    /// The transfer of a growing body broke off: what is there stays, the rest is a hole. By the writer. False: not
    /// possible, for its length is not known, it is in window mode, has ended, or the budget has no room; it is as it was.
    package func makePartial() -> Bool { false }
}
