/// What is under way, for those who watch and control the proxy.
extension Worker {
    var transfers: [TransferReport] {
        fetches.entries.map { $1.report(TransferID(.fetch, worker: number, place: $0)) }
            + tunnels.entries.map { $1.report(TransferID(.tunnel, worker: number, place: $0), on: self) }
    }

    /// - Returns: false if the transfer is over.
    func cancel(_ id: TransferID) -> Bool {
        switch id.kind {
        case .fetch:
            guard let fetch = fetches[id.place] else { return false }
            fetch.cancel()
        case .tunnel:
            guard let tunnel = tunnels[id.place] else { return false }
            counters.add(.transfersCancelled)
            tunnel.relay.cancel()
        }
        return true
    }
}
