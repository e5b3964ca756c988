/// Where head part, table and blocks lie in the file of a large object (docs/storage-format.md).
///
///     length known at the beginning   │ head part │ table │ … │ blocks                 │
///     length known at the end         │ head part │ blocks            │ … │ table      │
///
/// Blocks begin at a multiple of 4096, and so does a table behind them. How long the table is follows from the length of the
/// body: if that is not known yet, only the other end of the file is a place for it.
struct LargeLayout: Equatable, Sendable {
    /// Bytes of the head part.
    let headPart: Int
    /// Bytes of the body.
    let length: Int
    let tableIsBehind: Bool

    var blockCount: Int { (length + blockBytes - 1) / blockBytes }
    private var tableBytes: Int { blockCount * BlockEntry.byteCount }

    var tableStart: Int { tableIsBehind ? headPart + padded(length, to: 4096) : headPart }
    var blocksStart: Int { tableIsBehind ? headPart : padded(headPart + tableBytes, to: 4096) }
    /// One past the last byte of the file.
    var end: Int { tableIsBehind ? tableStart + tableBytes : blocksStart + length }
    /// What the file takes.
    var fileBytes: UInt64 { UInt64(padded(end, to: 4096)) }
}
