import Access
import EventLoop
import Message
import Passwords
import TLS
import Transaction

/// Who is asking: the credentials of `Proxy-Authorization`, checked off the workers and remembered briefly (RFC 7617).
enum Authentication {
    enum Result {
        case known(user: String)
        case refused(Refusal)
        /// The answer comes by the closure.
        case waiting
    }

    static func check(
        _ request: OwnedRequest, worker: Worker, snapshot: Snapshot, _ done: @escaping (Result) -> Void
    ) -> Result {
        guard let users = snapshot.users else { return .refused(.internalError) }
        guard let value = request.fields.first(.proxyAuthorization),
            let credentials = BasicCredentials(fieldValue: value)
        else {
            worker.counters.add(.authenticationFailures)
            return .refused(.authenticationRequired)
        }
        switch worker.credentials.answer(for: credentials, client: request.client, now: worker.uptime) {
        case .verified: return .known(user: credentials.user)
        case .refused:
            worker.counters.add(.authenticationFailures)
            return .refused(.authenticationRequired)
        case .tooManyFailures: return .refused(.authenticationBusy)
        case .unknown: break
        }
        let hash = users.hash(for: credentials.user)
        let inbox = worker.loop.inbox
        let reply = Reply(worker: worker, credentials: credentials, client: request.client, exists: hash != nil, done)
        let isTaken = worker.shared.pool.submit(
            { verify(password: credentials.password, hash: hash ?? hashOfNobody) },
            then: { isValid in reply.deliver(isValid) }, on: inbox)
        guard isTaken else { return .refused(.authenticationBusy) }
        worker.counters.add(.authenticationChecks)
        return .waiting
    }

    /// Comes back to the worker's thread by its inbox, and is touched nowhere else.
    private final class Reply: @unchecked Sendable {
        private let worker: Worker
        private let credentials: BasicCredentials
        private let client: IPAddress?
        private let exists: Bool
        private let done: (Result) -> Void

        init(
            worker: Worker, credentials: BasicCredentials, client: IPAddress?, exists: Bool,
            _ done: @escaping (Result) -> Void
        ) {
            self.worker = worker
            self.credentials = credentials
            self.client = client
            self.exists = exists
            self.done = done
        }

        func deliver(_ isValid: Bool) {
            let isKnown = isValid && exists
            worker.credentials.record(credentials, isValid: isKnown, client: client, now: worker.uptime)
            if !isKnown { worker.counters.add(.authenticationFailures) }
            done(isKnown ? .known(user: credentials.user) : .refused(.authenticationRequired))
        }
    }
}
