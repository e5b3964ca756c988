import EventLoop
import Glibc
import Message

/// Accepts connections for one worker; each worker has its own listener on the same address (`SO_REUSEPORT`).
final class Listener {
    enum Kind { case tcp, unix }
    private unowned let worker: Worker
    private let descriptor: Descriptor
    private let kind: Kind
    private var event = IOEvent()
    private var pause: Timer?

    /// Accepted in one turn at most, so that a flood of connections does not starve those that exist.
    private static let acceptsPerTurn = 64

    init(worker: Worker, descriptor: consuming Descriptor, kind: Kind) {
        self.worker = worker
        self.descriptor = descriptor
        self.kind = kind
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe event.assign(
            worker.loop, fd: self.descriptor.rawValue, .read,
            { _, _, context in
                unsafe Unmanaged<Listener>.fromOpaque(context!).takeUnretainedValue().acceptAll()
            }, context)
        event.add()
    }

    deinit { if let pause { worker.loop.timers.cancel(pause) } }

    private func acceptAll() {
        for _ in 0..<Listener.acceptsPerTurn {
            switch Sockets.accept(descriptor.rawValue) {
            case .accepted(let accepted, let address):
                if kind == .tcp { Sockets.setNoDelay(accepted.rawValue) }
                worker.welcome(Transport(plain: accepted), from: kind == .tcp ? IPAddress(address) : nil)
            case .wouldBlock:
                return
            case .aborted:
                continue
            case .outOfDescriptors:
                return rest()
            case .failed:
                return rest()
            }
        }
    }

    /// Without descriptors the listener would be ready for ever: it is looked at again a moment later.
    private func rest() {
        event.remove()
        let timer = Timer { [unowned self] in
            pause = nil
            event.add()
        }
        pause = timer
        worker.loop.timers.schedule(timer, after: .milliseconds(500))
    }
}
