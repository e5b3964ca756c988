import FuzzSupport
import Message
import Releases

/// The first byte chooses the kind of index, the rest is its text. Any text is filtered or refused. What is left of an index is an index, and has
/// nothing more to remove.
@_cdecl("FuzzReleaseIndex_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        let kinds: [ReleaseKind] = [.npmIndex, .pythonIndex, .npmIndex, .pythonIndex, .npmDocument]
        let kind = kinds[Int(bytes.first ?? 0) % kinds.count]
        let text = Array(bytes.dropFirst())
        for form in [IndexForm.json, .html] {
            for digest in (try? promisedDigests(text, kind, form)) ?? [] {
                precondition(digest.digits.count == (digest.algorithm == .sha256 ? 64 : 128), "a digest is whole")
            }
        }
        var rule = MinimumAge(age: Seconds(3 * 86_400))
        if let first = bytes.first, first & 2 != 0 { rule.undated = .refuse }
        let now = WallTime(secondsSinceEpoch: 1_800_000_000)
        guard let index = try? filterIndex(text, kind, of: "a", by: rule, now: now) else { return 0 }
        precondition((index.text != nil) == !index.withheld.isEmpty, "what is removed is reported")
        guard let left = index.text else { return 0 }
        guard let again = try? filterIndex(left, kind, of: "a", by: rule, now: now) else {
            preconditionFailure("what is left is an index")
        }
        precondition(again.text == nil && again.withheld.isEmpty, "everything was removed at once")
        return 0
    }
}
