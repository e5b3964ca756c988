import EventLoop
package import Fleet
import Forwarding
import Framing
import Message
package import Settings

/// What `larder doctor --server` finds out about another node that owns responses.
package struct PeerFacts: Sendable, Equatable {
    /// As in `fleet.peers`, or an address of its name.
    package var name: String
    /// What the node says when it is asked for something that it does not have.
    package var result: Result<PeerVerdict, ProbeFailure>
    /// When the first certificate of the chain ends, in seconds since 1970.
    package var chainEnd: Int64?
}

/// Asks each node of `fleet.peers`, this one included. Blocks, for some seconds for each node that does not answer.
package func examinePeers(_ terms: FleetTerms, dns: DNSSettings) -> [PeerFacts] {
    guard let peers = terms.peers, let loop = try? EventLoop(),
        let resolver = try? Resolver(loop: loop, options: Resolver.Options(dns))
    else { return [] }
    func ask(_ name: String, _ host: String, _ port: UInt16, serverName: String) -> PeerFacts {
        var facts = PeerFacts(name: name, result: .failure(.silence))
        do throws(ProbeFailure) {
            let deadline = ProbeConnection.deadline
            let addresses = try ProbeConnection.addresses(
                of: host, port: port, by: deadline, loop: loop, resolver: resolver)
            let connection = try ProbeConnection(
                to: addresses, by: deadline, tls: (peers.tls.client, serverName), loop: loop)
            facts.chainEnd = connection.transport.chainEnd
            facts.result = .success(try verdict(connection, terms))
        } catch { facts.result = .failure(error) }
        return facts
    }
    switch peers.peers {
    case .nodes(let nodes): return nodes.map { ask($0.name, $0.host, $0.port, serverName: $0.host) }
    case .name(let host, let port):
        do throws(ProbeFailure) {
            let addresses = try ProbeConnection.addresses(
                of: host, port: port, by: ProbeConnection.deadline, loop: loop, resolver: resolver)
            return addresses.compactMap { IPAddress($0) }.map { address in
                ask(address.isV4 ? "\(address):\(port)" : "[\(address)]:\(port)", "\(address)", port, serverName: host)
            }
        } catch { return [PeerFacts(name: "\(host):\(port)", result: .failure(error))] }
    }
}

/// Asks for what nobody has, from the store alone, so that nothing is fetched.
private func verdict(_ connection: ProbeConnection, _ terms: FleetTerms) throws(ProbeFailure) -> PeerVerdict {
    var question = PeerQuestion(node: "\(terms.node)")
    question.isForStoreOnly = true
    guard let value = question.encoded(hash: terms.hash) else { preconditionFailure("a short name fits") }
    var request = Array("GET http://doctor.invalid/ HTTP/1.1\r\nHost: doctor.invalid\r\n".utf8)
    request += Array("Cache-Control: only-if-cached\r\nConnection: close\r\n".utf8)
    request += PeerQuestion.fieldName + Array(": ".utf8) + value + Array("\r\n\r\n".utf8)
    let deadline = ProbeConnection.deadline
    try connection.send(request, until: deadline)
    var answer: [UInt8] = []
    while true {
        answer += try connection.receive(until: deadline)
        guard let fields = try fields(ofFinalHead: answer) else { continue }
        guard let verdict = fields.value(ofSpelling: PeerQuestion.fieldName).flatMap({ PeerVerdict($0) }) else {
            let line = answer.prefix { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") }
            throw .nonsense(String(decoding: line, as: UTF8.self))
        }
        return verdict
    }
}

/// Nil if the final head has not come.
private func fields(ofFinalHead answer: [UInt8]) throws(ProbeFailure) -> Fields? {
    var reader = ResponseReader(to: .get)
    var (head, offset) = (ResponseHead(), 0)
    do throws(FramingError) {
        while true {
            let start = offset
            switch try reader.next(in: answer.span, from: &offset, head: &head, limits: Limits()) {
            case .more: return nil
            case .interim: continue
            case .head: return Fields(bytes: Array(answer[start..<offset]), section: head.fields)
            case .data, .end: preconditionFailure("the head comes first")
            }
        }
    } catch { throw .nonsense("it is no HTTP: \(error.reason)") }
}
