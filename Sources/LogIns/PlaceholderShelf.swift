package import Credentials
import EventLoop
package import Message
import Synchronization

/// The placeholders that clients hold.
///
/// May be used by every thread.
package final class PlaceholderShelf: Sendable {
    private struct State {
        var book = PlaceholderBook()
        var index = PlaceholderIndex()
    }
    private let state = Locked(State())

    package init() {}

    /// For requests. The same object until something is issued, revoked or forgotten.
    package var index: PlaceholderIndex { state.withLock { $0.index } }

    package var placeholders: [Placeholder] { state.withLock { $0.book.placeholders } }

    /// Makes a placeholder for a credential.
    ///
    /// - Parameter lifetime: nil until it is revoked.
    package func issue(
        _ credential: String, like secret: Secret, prefix: String?, job: String?, lifetime: Seconds?, now: Moment
    ) throws(PlaceholderBook.Failure) -> Placeholder {
        let shape = PlaceholderShape(like: secret, prefix: prefix.map { Array($0.utf8) })
        var random: [UInt8] = []
        let text = shape.make {
            if random.isEmpty { random = randomBytes(64) }
            return random.removeLast()
        }
        let placeholder = Placeholder(
            id: String(decoding: hexadecimal(randomBytes(4)), as: UTF8.self), text: text, credential: credential,
            job: job, issuedAt: now.wallTime, endsAt: lifetime.map { Expiry(after: $0, from: now) })
        try state.withLock { (state) throws(PlaceholderBook.Failure) in
            try state.book.issue(placeholder, now: now)
            state.index = PlaceholderIndex(state.book.placeholders)
        }
        return placeholder
    }

    /// - Returns: those that held until now.
    package func revoke(_ selection: PlaceholderBook.Selection, now: Moment) -> [Placeholder] {
        state.withLock { state in
            let revoked = state.book.revoke(selection, now: now)
            state.index = PlaceholderIndex(state.book.placeholders)
            return revoked
        }
    }
}
