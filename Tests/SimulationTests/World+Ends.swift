import Caching
import Message

extension World {
    /// An exchange has its end: it is judged, counted, and its client learns from it.
    func ended(_ exchange: SimulatedExchange, _ why: String) {
        trace("exchange \(exchange.id): \(exchange.answer.end!) \(why), \(exchange.answer.bytes.count) bytes")
        exchanges.removeAll { $0 === exchange }
        oracle.judgeEnd(of: exchange, in: self)
        let answer = exchange.answer
        ledger.served += answer.bytes.count
        clients[exchange.client].learn(exchange)
        switch answer.end! {
        case .whole: note(answer.record == nil ? .passedOn : .servedStored)
        case .broken: note(.broken)
        case .refused: note(.refused)
        case .left: note(.left)
        }
        if answer.record != nil, answer.status == 304 { note(.notModified) }
        if answer.record != nil, answer.status == 206 { note(.part) }
        if answer.isTransformed { note(.transformed) }
    }

    /// At the end, nothing is under way: what came from the origin is stored, passed on or dropped, and what is stored is true.
    func balance() {
        if ledger.fromOrigin != ledger.stored + ledger.relayed + ledger.dropped {
            violated("bytes are lost: \(ledger)", nil)
        }
        for record in store.records.flatMap({ $0 }) {
            let content = record.truth
            let isTrue = zip(record.body.bytes, content).allSatisfy { $0 == nil || $0 == $1 }
            if !isTrue || record.body.bytes.count > content.count {
                violated("what is stored of /\(record.uri) is not true", nil)
            }
            if !record.body.fills.isEmpty { violated("a hole of /\(record.uri) is claimed by nobody", nil) }
            let isWhole = record.body.bytes.count == content.count && !record.body.bytes.contains { $0 == nil }
            if record.body.state == .complete, !isWhole { violated("/\(record.uri) is not whole", nil) }
            if record.body.state == .growing { violated("/\(record.uri) grows for ever", nil) }
        }
        if !store.transfers.isEmpty { violated("a transfer without outcome", nil) }
    }
}

/// Every byte is accounted for.
struct Ledger {
    var fromOrigin = 0
    var stored = 0
    var relayed = 0
    var dropped = 0
    var served = 0
}
