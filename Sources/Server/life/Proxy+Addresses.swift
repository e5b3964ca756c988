import EventLoop
import Routing
import Transaction

extension Proxy {
    /// Resolves a host on a worker. Blocks the calling thread, for at most `timeout`; then it fails with `nameTimeout`.
    func addresses(of host: String, timeout: Duration) -> Result<[SocketAddress], Refusal> {
        let answer = Answer()
        guard let worker = anyWorker else { return .failure(.internalError) }
        worker.inbox.post { answer.ask(worker.worker.value, host, within: timeout) }
        return answer.wait(timeout)
    }

    private final class Answer: Sendable {
        private let found = Locked<Result<[SocketAddress], Refusal>?>(nil)
        private let signal = CountingSemaphore()

        /// Called on the worker's thread.
        func ask(_ worker: Worker, _ host: String, within timeout: Duration) {
            if let known = HostAddresses.known(of: host, worker: worker) {
                return deliver(known.mapError(Refusal.init))
            }
            _ = worker.resolver.resolve(host, by: worker.loop.now.advanced(by: timeout)) { [self] result in
                switch result {
                case .success(let resolution): deliver(.success(resolution.addresses))
                case .failure(let error): deliver(.failure(Refusal(NameFailure(error))))
                }
            }
        }

        private func deliver(_ result: Result<[SocketAddress], Refusal>) {
            found.withLock { $0 = result }
            signal.signal()
        }

        func wait(_ timeout: Duration) -> Result<[SocketAddress], Refusal> {
            _ = signal.wait(timeout: timeout)
            return found.withLock { $0 } ?? .failure(.nameTimeout)
        }
    }
}
