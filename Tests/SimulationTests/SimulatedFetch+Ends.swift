import Transaction

/// How a fetch ends: with the last byte, before the head, or because nobody gains by it any more.
extension SimulatedFetch {
    func complete() {
        if let owed, owed > 0 { return partLied() }
        if let total, received < total, restAsked != nil { return breakOff() }
        state = .finished
        switch sink {
        case .relay: exchange?.relayEnd()
        case .store(let record): if !record.body.finish() { drop(record) }
        case .fill(let fill, _):
            fill.close()
            exchange?.fetch = nil
        case .discard, .undecided: break
        }
        leaveExchange()
    }

    /// The body is longer or shorter than its `Content-Range` says.
    func partLied() {
        world.note(.partLied)
        giveUp(keepsPart: false)
    }

    func drop(_ record: Record) {
        record.body.fail()
        world.store.remove(record)
    }

    /// The exchange goes on by itself, with what is there.
    func leaveExchange() {
        if let exchange, exchange.fetch === self { exchange.fetch = nil }
        exchange = nil
    }

    func failBeforeHead(_ refusal: Refusal) {
        if isResuming { return breakOff() }
        state = .finished
        hole?.fill.close()
        world.oracle.originFailed(request.uri, step: world.step)
        let staleMayServe = self.staleMayServe
        let exchange = self.exchange
        leaveExchange()
        let action = transaction.on(.originFailed(refusal, staleMayServe: staleMayServe))
        if case .serveStale = action, let stored {
            resolve(.fallback(stored, failure: refusal.rawValue))
            exchange?.serveFallback(stored)
        } else {
            resolve(.failed(refusal.rawValue))
            guard let exchange else { return }
            exchange.answer.status == nil ? exchange.refuse(refusal) : exchange.end(.broken, refusal.name)
        }
    }

    func abort() {
        state = .finished
        resolve(.notShared)
        leaveExchange()
    }

    func clientLeft() {
        exchange = nil
        switch sink {
        case .store, .fill: break
        case .undecided where transfer.map { !$0.followers.isEmpty } == true: break
        case .undecided, .relay, .discard:
            hole?.fill.close()
            abort()
        }
    }

    func resolve(_ outcome: ModelTransfer.Outcome) {
        guard let transfer, transfer.outcome == nil else { return }
        transfer.resolve(outcome, in: &world.store)
        world.resolved.append(transfer)
    }
}
