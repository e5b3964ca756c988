/// How far the bytes of a head that has not arrived whole were looked at.
///
/// A head is parsed in one go when it comes in one piece, as nearly all do. Otherwise each line is checked once when
/// its LF arrives, so a wrong one is refused at once; and the whole is parsed when the empty line has come. No byte is scanned more
/// than three times, however they trickle in. Nothing is kept in the head between calls: it may serve other connections.
package struct HeadProgress: Sendable {
    enum Stage: Sendable { case startLine, fields }
    var stage = Stage.startLine
    /// Where the first line begins that is not complete.
    var lineStart = 0
    /// No LF stands between `lineStart` and here.
    var scanned = 0
    /// Field lines before `lineStart`.
    var fieldCount = 0

    package init() {}

    var isFresh: Bool { scanned == 0 }
}
