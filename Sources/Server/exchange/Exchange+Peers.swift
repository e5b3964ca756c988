import Fleet
import Forwarding
import Framing
import Transaction

extension PeerVerdict {
    init(_ authority: Service.Authority) {
        switch authority {
        case .store: self = .hit
        case .origin: self = .fetched
        case .nobody: self = .stale
        }
    }
}

/// Answers another node of the fleet, which asks for what this node owns.
///
/// The rules decide for the client of that node, with the address and the name that the node says. Its limits were counted there. Whatever is wrong, the answer is a refusal that says
/// so to the node, which asks the origin itself.
extension Exchange {
    func startForPeer(_ peer: Result<PeerQuestion, PeerObjection>) {
        stream.peerVerdict = .refused(.unanswered)
        switch peer {
        case .failure(let objection): refuse(objection)
        case .success:
            guard request.head.target.form == .absolute, request.destination != nil, request.method == .get,
                !request.hasBody
            else { return refuse(.malformed) }
            guard !request.isPersonal else { return refuse(.personal) }
            guard stream.hasPlace else { return refuse(.tooManyRequests) }
            guard worker.shared.overload.state != .overloaded else { return refuse(.overloaded) }
            feed(.head)
        }
    }

    private func refuse(_ objection: PeerObjection) {
        stream.peerVerdict = .refused(objection)
        if objection == .personal { worker.shared.fleet?.peers?.noteRefusal(objection) }
        refuse(.accessDenied)
    }

    /// Called before a refusal is sent.
    func notePeerRefusal(_ refusal: Refusal) {
        if case .refused(let objection) = stream.peerVerdict, objection != .unanswered { return }
        stream.peerVerdict = .refused(refusal == .onlyIfCached ? .absent : .unanswered)
    }

    /// Tells the node that the origin is being asked, so that it waits, and does not ask the origin as well.
    func tellPeerOfWork() {
        guard !hasToldPeer else { return }
        hasToldPeer = true
        stream.interim {
            $0 += Array("HTTP/1.1 102 Processing\r\n".utf8) + PeerVerdict.working.fieldLine + [0x0D, 0x0A]
        }
    }
}
