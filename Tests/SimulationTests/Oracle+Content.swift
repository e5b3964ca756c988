import Message
import Transaction

/// What a client has in the end: the right bytes, all of them where it says so, none twice.
extension Oracle {
    func judgeRelay(to exchange: SimulatedExchange, _ response: OriginAnswer, in world: World) {
        world.trace("exchange \(exchange.id) gets answer \(response.id) passed on")
        if response.request !== exchange.request { world.violated("an answer to somebody else is passed on", exchange) }
    }

    func judgeRefusal(of exchange: SimulatedExchange, _ refusal: Refusal, in world: World) {
        world.trace("exchange \(exchange.id) is refused: \(refusal.name)")
        if refusal == .onlyIfCached, exchange.mayForward {
            world.violated("only-if-cached, which nobody said", exchange)
        }
    }

    func judgeEnd(of exchange: SimulatedExchange, in world: World) {
        let answer = exchange.answer
        let objection: String?
        if let record = answer.record {
            objection = objectionToStored(exchange, record)
        } else if let relayed = answer.relayed {
            objection = objectionToRelayed(answer, relayed)
        } else {
            objection = answer.bytes.isEmpty ? nil : "bytes without a head"
        }
        if let objection { world.violated(objection, exchange) }
    }

    private func objectionToRelayed(_ answer: ClientAnswer, _ relayed: OriginAnswer) -> String? {
        if answer.end == .whole, relayed.lies { return "whole, and its Content-Range says otherwise" }
        // The rest may come from other answers, of the same representation or not at all.
        if answer.end == .whole, answer.bytes != relayed.body { return "whole, and not what the origin sent" }
        return relayed.body.starts(with: answer.bytes) ? nil : "other bytes than the origin's"
    }

    private func objectionToStored(_ exchange: SimulatedExchange, _ record: Record) -> String? {
        let (answer, content) = (exchange.answer, record.truth)
        for (byte, offset) in zip(answer.bytes, answer.offsets) {
            guard offset < content.count, byte == Representation.coded(content[offset], answer.isTransformed) else {
                return "byte \(offset) is not of version \(record.lineage[0].representation!.version)"
            }
        }
        let promised = promised(exchange, content.count)
        guard answer.offsets.elementsEqual(promised.prefix(answer.offsets.count)) else {
            return "bytes \(answer.offsets), in place of \(promised)"
        }
        if answer.end == .whole, answer.offsets.count != promised.count {
            return "whole, with \(answer.offsets.count) bytes of \(promised.count)"
        }
        return nil
    }

    /// The offsets of the bytes that the answer is to have.
    private func promised(_ exchange: SimulatedExchange, _ length: Int) -> [Int] {
        if exchange.request.method == .head { return [] }
        switch exchange.answer.status {
        case 304, 416, 204: return []
        case 206: return exchange.request.spans.compactMap { $0.resolved(length) }.flatMap { Array($0) }
        default: return Array(0..<length)
        }
    }
}
