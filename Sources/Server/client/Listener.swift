import EventLoop
import Glibc
import Message

/// Accepts connections for one worker. Each worker has its own listener on the same address (`SO_REUSEPORT`).
final class Listener {
    enum Kind { case tcp, unix }
    private unowned let worker: Worker
    private let descriptor: Descriptor
    private let kind: Kind
    private let terms: ListenerTerms
    private var event = IOEvent()
    /// Runs while accepting is paused.
    private var pause: Timer?

    /// Connections accepted in one turn at most, so that a flood of them does not starve those that exist.
    private static let acceptsPerTurn = 64

    init(worker: Worker, descriptor: consuming Descriptor, kind: Kind, terms: ListenerTerms) {
        self.worker = worker
        self.descriptor = descriptor
        self.kind = kind
        self.terms = terms
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe event.assign(
            worker.loop, fd: self.descriptor.rawValue, .read,
            { _, _, context in
                unsafe Unmanaged<Listener>.fromOpaque(context!).takeUnretainedValue().acceptAll()
            }, context)
        event.add()
    }

    deinit { if let pause { worker.timers.cancel(pause) } }

    private func acceptAll() {
        for _ in 0..<Listener.acceptsPerTurn {
            switch Sockets.accept(descriptor.rawValue) {
            case .accepted(let accepted, let address):
                if kind == .tcp { Sockets.setNoDelay(accepted.rawValue) }
                worker.accept(
                    Transport(plain: accepted), from: kind == .tcp ? IPAddress(address) : nil, by: terms)
            case .wouldBlock:
                return
            case .aborted:
                continue
            case .outOfDescriptors:
                return pauseAccepting()
            case .failed:
                return pauseAccepting()
            }
        }
    }

    /// Stops accepting for half a second. Without free descriptors the listener stays readable, and the loop would spin.
    private func pauseAccepting() {
        precondition(pause == nil, "accepting is resumed once for each pause")
        event.remove()
        let timer = Timer { [unowned self] in
            pause = nil
            event.add()
        }
        pause = timer
        worker.timers.schedule(timer, after: .milliseconds(500))
    }
}
