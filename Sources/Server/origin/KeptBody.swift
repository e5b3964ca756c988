import Credentials
import LimitTables
import Message

/// The body of a request that is kept until it is whole, because what goes out depends on all of it: a signature that covers it, or a
/// placeholder in one of its members.
///
/// It is kept until the origin has answered, so it can be sent again after a challenge.
final class KeptBody {
    /// What is looked for in a body.
    struct Members {
        /// Members of which one may be a placeholder.
        struct Listed {
            let syntax: MemberSyntax
            let places: PlaceholderPlaces
            let credential: String
        }
        let listed: Listed?
        /// What it must not hold.
        let requirements: [BodyRequirement]

        /// Nil: nothing is looked for.
        init?(_ listed: Listed?, _ requirements: [BodyRequirement]) {
            guard listed != nil || !requirements.isEmpty else { return nil }
            self.listed = listed
            self.requirements = requirements
        }

        /// Whether nothing is found any more, whatever follows these bytes.
        func areSettled(by bytes: [UInt8]) -> Bool {
            listed == nil && requirements.allSatisfy { $0.isSettled(by: bytes) }
        }
    }

    enum State {
        /// The client is sending it.
        case arriving
        case whole(trailers: Fields?)
        /// It is longer than `Limits.keptBodyBytesMax`, or its beginning has shown that there is nothing to look for. What has come is sent, and the
        /// rest while it comes.
        case released
    }
    let members: Members?
    /// What the request proves covers the body.
    var isCovered: Bool
    private(set) var state = State.arriving
    /// As the client sent it.
    private(set) var bytes: [UInt8] = []
    /// With the secret in place of a placeholder. Nil if it has none.
    var replacement: [UInt8]?
    /// The credential whose placeholder is in the body, once the access rules have allowed it.
    var allowedCredential: String?
    private let place: Occupancy.Place

    /// - Parameter place: one of `Limits.keptBodiesMax`.
    init(_ members: Members?, isCovered: Bool, _ place: Occupancy.Place) {
        self.members = members
        self.isCovered = isCovered
        self.place = place
    }

    var isArriving: Bool { if case .arriving = state { true } else { false } }
    var isReleased: Bool { if case .released = state { true } else { false } }
    var isWhole: Bool { if case .whole = state { true } else { false } }
    /// What is sent.
    var content: [UInt8] { replacement ?? bytes }
    var trailers: Fields? { if case .whole(let trailers) = state { trailers } else { nil } }

    func append(_ piece: UnsafeRawBufferPointer) { unsafe bytes.append(contentsOf: piece) }

    func end(trailers: Fields?) { state = .whole(trailers: trailers) }

    func release() { state = .released }
}
