import COpenSSL
import Synchronization

/// Sessions that servers offered for resumption (RFC 8446 §2.2), by server name. Each is used once (§C.4).
final class TLSSessionCache: Sendable {
    /// The most sessions that are kept. Each takes about 2 KiB, with the certificate.
    static let sessionsMax = 1000

    /// Owns one reference to an `SSL_SESSION`.
    @safe final class Resumable: @unchecked Sendable {  // it never changes, and its reference count is atomic
        let raw: OpaquePointer

        init(adopting raw: OpaquePointer) { unsafe self.raw = unsafe raw }

        deinit { unsafe SSL_SESSION_free(raw) }
    }

    private struct State {
        var young: [String: Resumable] = [:]
        var old: [String: Resumable] = [:]
    }
    private let state = Mutex(State())

    func store(_ session: Resumable, for serverName: String) {
        state.withLock { state in
            if state.young.count >= TLSSessionCache.sessionsMax / 2 {
                state.old = state.young
                state.young = [:]
            }
            state.young[serverName] = session
        }
    }

    func take(for serverName: String) -> Resumable? {
        state.withLock { state in
            state.young.removeValue(forKey: serverName) ?? state.old.removeValue(forKey: serverName)
        }
    }

    var count: Int { state.withLock { $0.young.count + $0.old.count } }
}
