import Caching
import Message
import Releases
import Transaction

/// What a minimum age says of the stored response.
extension Explainer {
    /// Returns nil if the client gets the response. Notes the verdict.
    mutating func refusalByAge() -> (Explanation.Decision, String)? {
        guard let rule = request.releaseRule, let selected, let path = request.access.path else { return nil }
        guard !rule.kind.isIndex else {
            note(
                "min_age", "index",
                rule.kind.isCertainOfIndex
                    ? "releases that are too young are removed"
                    : "releases that are too young are removed, if the document is the index of a package")
            return nil
        }
        let (verdict, file) = rule.verdict(
            onFileWith: selected.fields, status: selected.cached.status, path: path, now: now)
        switch verdict {
        case .passes: note("min_age", "verdict", "passes")
        case .passesUndated: note("min_age", "verdict", "passes: nobody says when it was published")
        case .reported(let objection):
            note("min_age", "verdict", "passes, because the rule only reports: \(Withheld(file, objection).text)")
        case .refused(let objection):
            let refusal = objection == .undated ? Refusal.releaseUndated : .tooYoung
            let text = Withheld(file, objection).text
            note("min_age", "verdict", "refused: \(text)")
            return (.refuse, "\(refusal.status) \(refusal.name): \(text)")
        }
        return nil
    }
}
