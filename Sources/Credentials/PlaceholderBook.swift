package import Message

/// A text that a client holds in place of a secret. It means something at this proxy alone.
package struct Placeholder: Equatable, Sendable {
    /// By which people name it: it is no secret.
    package let id: String
    package let text: [UInt8]
    /// The name of the credential for which it stands.
    package let credential: String
    /// For whom or what it was issued, as the one who did that called it.
    package let job: String?
    package let issuedAt: WallTime
    /// Nil: it holds until it is revoked.
    package fileprivate(set) var endsAt: Expiry?
    package fileprivate(set) var isRevoked: Bool

    package init(
        id: String, text: [UInt8], credential: String, job: String?, issuedAt: WallTime, endsAt: Expiry?,
        isRevoked: Bool = false
    ) {
        self.id = id
        self.text = text
        self.credential = credential
        self.job = job
        self.issuedAt = issuedAt
        self.endsAt = endsAt
        self.isRevoked = isRevoked
    }

    package func holds(at now: Moment) -> Bool { !isRevoked && !(endsAt?.isOver(at: now) ?? false) }
}

/// The placeholders that were issued. Those that have ended are known for another day, so that a refusal can say so.
package struct PlaceholderBook: Sendable {
    /// Why nothing was issued.
    package enum Failure: Error, Equatable, Sendable {
        /// `countMax` placeholders hold.
        case full
    }

    /// Which placeholders are revoked.
    package enum Selection: Equatable, Sendable {
        case id(String)
        case text([UInt8])
        case credential(String, job: String?)
        case job(String)

        fileprivate func contains(_ placeholder: Placeholder) -> Bool {
            switch self {
            case .id(let id): placeholder.id == id
            case .text(let text): placeholder.text == text
            case .credential(let name, let job):
                placeholder.credential == name && (job == nil || placeholder.job == job)
            case .job(let job): placeholder.job == job
            }
        }
    }

    package static let countMax = 10_000
    package static let rememberedFor = Seconds(86_400)

    package private(set) var placeholders: [Placeholder]

    package init(_ placeholders: [Placeholder] = []) { self.placeholders = placeholders }

    package mutating func issue(_ placeholder: Placeholder, now: Moment) throws(Failure) {
        forget(now: now)
        guard placeholders.count < PlaceholderBook.countMax else { throw .full }
        placeholders.append(placeholder)
    }

    /// - Returns: those that held until now.
    package mutating func revoke(_ selection: Selection, now: Moment) -> [Placeholder] {
        forget(now: now)
        var revoked: [Placeholder] = []
        for index in placeholders.indices
        where selection.contains(placeholders[index]) && placeholders[index].holds(at: now) {
            placeholders[index].isRevoked = true
            placeholders[index].endsAt = Expiry(after: .zero, from: now)
            revoked.append(placeholders[index])
        }
        return revoked
    }

    private mutating func forget(now: Moment) {
        placeholders.removeAll {
            $0.endsAt?.hasBeenOver(for: PlaceholderBook.rememberedFor, at: now) ?? false
        }
    }
}
