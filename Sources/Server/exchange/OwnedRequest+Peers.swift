import Fleet
import Message
import Rules

/// What another node of the fleet says. A class: requests of clients, which are nearly all, spare the room.
final class AskingPeer {
    let result: Result<PeerQuestion, PeerObjection>

    init(_ result: Result<PeerQuestion, PeerObjection>) { self.result = result }
}

/// Requests of other nodes of the fleet, and what this node says when it asks one of them.
extension OwnedRequest {
    /// Takes what the node says that asks. Called before the rules are applied: they look at its client.
    func readPeer(_ desk: PeerDesk?) {
        guard let desk, let value = fields.value(ofSpelling: PeerQuestion.fieldName) else {
            return take(.failure(.malformed))
        }
        take(desk.read(Array(value)))
    }

    /// What the node says whose request this is. Nil: the client is no node.
    var peerQuestion: PeerQuestion? { try? peer?.result.get() }

    /// The address for which access is decided.
    var asker: IPAddress? { peer == nil ? client : peerQuestion?.client }

    /// The name of the listener by which the client came, here or at the node that asks.
    var listenerName: String? { peer == nil ? listener?.name : peerQuestion?.listener }

    /// Says on whose behalf another node is asked.
    func describe(to question: inout PeerQuestion, isForStoreOnly: Bool) {
        question.client = asker
        question.listener = listenerName
        question.isForStoreOnly = isForStoreOnly
        question.user = identity.map {
            PeerQuestion.User(name: $0.name, scheme: $0.scheme.rawValue, groups: $0.groups)
        }
    }

    /// Whether another node may have the response, and may be told of the request: whoever asks gets the same, and it can be stored beyond
    /// this process.
    func isForFleet(_ snapshot: Snapshot) -> Bool {
        guard method == .get, !hasBody, destination != nil, !cache.overridesMethod, !cache.directives.noStore,
            !isUpgrade, handling.storage == .permanent, !snapshot.isBuiltIn(self)
        else { return false }
        return !isPersonal && !handling.use.contains(.noWrite) && collapses(snapshot) && folded == nil
            && releaseRule == nil && !asksForOriginState
    }

    /// Whether the client says how fresh a response has to be.
    var saysHowFresh: Bool {
        head.fields.present.contains(.cacheControl) || head.fields.present.contains(.pragma)
    }

    /// Whether the response depends on who asks, or on secrets of this node.
    var isPersonal: Bool {
        credential != nil || cookies != nil || placeholderUse != nil || placeholderFault != nil || pin != nil
            || head.fields.present.contains(.authorization) || !FleetDesk.isShareable(keyBytes)
    }
}

extension Identity {
    init?(_ user: PeerQuestion.User) {
        guard let scheme = AuthenticationSchemeName(rawValue: user.scheme) else { return nil }
        self.init(name: user.name, scheme: scheme, groups: user.groups)
    }
}
