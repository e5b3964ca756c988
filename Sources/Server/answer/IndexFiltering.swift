import Accounts
import Caching
import Forwarding
import Message
import Releases
import Storage
import TLS

/// Reads a stored index and removes what is too young. May block, and takes some milliseconds for each megabyte.
struct IndexFiltering: Sendable {
    let body: Body
    let coding: StoredCoding
    let rule: ReleaseRule
    /// Names the index in a warning.
    let uri: [UInt8]
    let now: WallTime
    let tier: MemoryTier

    private static let triedAgainAfter = Seconds(2)

    func run() -> FilteredIndexes.Result {
        do throws(Problem) {
            return result(of: try filtered(try text()))
        } catch {
            if case .text(.gone) = error { return FilteredIndexes.Result(content: .gone, madeAt: now) }
            Diagnostics.warning("min_age: \(Diagnostics.masked(uri)) is not filtered: \(error.text)")
            return FilteredIndexes.Result(content: .unreadable, madeAt: now)
        }
    }

    private enum Problem: Error {
        case text(IndexText.Problem), form(IndexError)

        var text: String {
            switch self {
            case .text(let problem): problem.text
            case .form(.notJSON(let error)): "it is not JSON: \(error.text)"
            case .form(.ambiguous): "a member occurs twice that decides which releases there are"
            }
        }
    }

    private func text() throws(Problem) -> [UInt8] {
        do throws(IndexText.Problem) {
            return try IndexText(body: body, coding: coding).decoded()
        } catch { throw .text(error) }
    }

    private func filtered(_ text: [UInt8]) throws(Problem) -> FilteredIndex {
        do throws(IndexError) {
            return try filterIndex(text, rule.kind, of: rule.package, by: rule.minimumAge, now: now)
        } catch { throw .form(error) }
    }

    private func result(of index: FilteredIndex) -> FilteredIndexes.Result {
        var result = FilteredIndexes.Result(
            content: .asStored, withheld: index.withheld, hasUndated: index.undatedCount > 0, madeAt: now,
            changesAt: index.changesAt
        )
        guard let text = index.text else { return result }
        if let body = stored(text) {
            result.content = .edited(body, tag: tag(of: text))
        } else {
            result.content = .noRoom
            // Who waits now is told so. Who comes later may find room.
            result.changesAt = now + Self.triedAgainAfter
        }
        return result
    }

    private func stored(_ text: [UInt8]) -> Body? {
        guard let body = tier.makeBody(expectedLength: text.count, lengthMax: text.count) else { return nil }
        guard unsafe text.withUnsafeBytes({ unsafe body.append($0) }) == .appended, body.finish() else { return nil }
        return body
    }

    /// A strong tag: it follows from the bytes alone.
    private func tag(of text: [UInt8]) -> [UInt8] {
        let digits = Digest.sha256(text).prefix(16).flatMap {
            [HeadWriter.hexDigit($0 >> 4), HeadWriter.hexDigit($0 & 15)]
        }
        return Array("\"larder-".utf8) + digits + [UInt8(ascii: "\"")]
    }
}
