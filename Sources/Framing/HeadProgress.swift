/// How far the bytes of an incomplete head have been checked.
///
/// A head that arrives in one piece, as nearly all do, is parsed in one go. Otherwise each line is checked when its LF arrives, so an
/// invalid one is refused at once, and the whole head is parsed when the empty line has arrived. No byte is scanned more than
/// three times, however slowly they arrive. The head itself keeps nothing between calls: other connections may use it.
/// Every idle connection has one, so its numbers have 32 bits, which is enough: the length of heads is limited.
package struct HeadProgress: Sendable {
    enum Stage: Sendable { case startLine, fields }
    var stage = Stage.startLine
    /// The offset of the first line that is incomplete.
    var lineStart: Int {
        get { Int(line) }
        set { line = UInt32(newValue) }
    }
    /// There is no LF between `lineStart` and this offset.
    var scanned: Int {
        get { Int(end) }
        set { end = UInt32(newValue) }
    }
    /// The number of field lines before `lineStart`.
    var fieldCount: Int {
        get { Int(fields) }
        set { fields = UInt32(newValue) }
    }
    private var line: UInt32 = 0
    private var end: UInt32 = 0
    private var fields: UInt32 = 0

    package init() {}

    var isFresh: Bool { end == 0 }
}
