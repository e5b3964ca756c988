package import JSON
package import Message

/// An index from which the releases that a minimum age refuses were removed.
package struct FilteredIndex: Sendable, Equatable {
    /// The text without them. Nil if nothing had to be removed: the text of the origin stands as it is.
    package var text: [UInt8]?
    /// What was removed, or what would have been if the rule did more than report.
    package var withheld: [Withheld] = []
    /// How many releases passed although nobody says when they were published.
    package var undatedCount = 0
    /// The first moment at which the result may be another one. Nil if it stays.
    package var changesAt: WallTime?

    /// The most bytes that an index may have, decoded.
    package static let bytesMax = 64 << 20
}

/// Why an index could not be filtered.
package enum IndexError: Error, Equatable {
    case notJSON(JSONError)
    /// A member that decides what is removed occurs twice: clients need not agree on which counts.
    case ambiguous
}

/// Removes from an index what a minimum age refuses. Every byte of what stays is kept.
///
/// - Parameters:
///   - kind: that of an index. If it is `npmDocument`, a text without the form of an index stays as it is.
///   - package: the name of the package that the index is about. Nil if it is not known.
package func filterIndex(
    _ text: [UInt8], _ kind: ReleaseKind, of package: String?, by rule: MinimumAge, now: WallTime
) throws(IndexError) -> FilteredIndex {
    precondition(kind.isIndex, "a file is no index")
    var judge = IndexJudge(kind: kind, package: package, rule: rule, now: now)
    let edit: JSONEdit
    do throws(JSONError) {
        switch kind {
        case .npmIndex:
            let index = try NpmIndex(text)
            guard !index.isAmbiguous else { throw .repeatedName("versions") }
            edit = index.edit(&judge)
        case .npmDocument:
            let index: NpmIndex
            // What is no object of JSON is no index that a client could read.
            do throws(JSONError) { index = try NpmIndex(text) } catch { return FilteredIndex() }
            guard index.hasFormOfIndex else { return FilteredIndex() }
            guard !index.isAmbiguous else { throw .repeatedName("versions") }
            edit = index.edit(&judge)
        case .pythonIndex:
            let index = try PythonIndex(text)
            guard !index.isAmbiguous else { throw .repeatedName("files") }
            edit = index.edit(&judge)
        case .file, .pythonFile: edit = JSONEdit()
        }
    } catch {
        if case .repeatedName = error { throw .ambiguous }
        throw .notJSON(error)
    }
    var result = judge.result
    if let until = rule.endOfBreakGlass(for: package, kind, now: now) { result.note(change: until) }
    if !edit.isEmpty { result.text = edit.apply(to: text) }
    return result
}

/// Judges the releases of one index, and remembers what came of it.
struct IndexJudge {
    let kind: ReleaseKind
    let package: String?
    let rule: MinimumAge
    let now: WallTime
    private(set) var result = FilteredIndex()

    init(kind: ReleaseKind, package: String?, rule: MinimumAge, now: WallTime) {
        self.kind = kind
        self.package = package
        self.rule = rule
        self.now = now
    }

    /// Whether the release is removed.
    ///
    /// - Parameter release: a version or a file.
    mutating func removes(_ release: String, published: WallTime?) -> Bool {
        switch rule.verdict(on: package, of: kind, published: published, now: now) {
        case .passes: return false
        case .passesUndated:
            result.undatedCount += 1
            return false
        case .reported(let objection):
            note(release, objection)
            return false
        case .refused(let objection):
            note(release, objection)
            return true
        }
    }

    private mutating func note(_ release: String, _ objection: AgeObjection) {
        let name = kind == .npmIndex || kind == .npmDocument ? "\(package ?? "a package") \(release)" : release
        result.withheld.append(Withheld(name, objection))
        if case .tooYoung(_, let opens) = objection { result.note(change: opens) }
    }
}

extension FilteredIndex {
    mutating func note(change time: WallTime) { changesAt = changesAt.map { min($0, time) } ?? time }
}
