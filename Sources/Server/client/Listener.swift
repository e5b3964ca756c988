import EventLoop
import Glibc
import Message
import Transport

/// Accepts connections for one worker. Each worker has its own listener on the same address (`SO_REUSEPORT`).
final class Listener {
    enum Kind { case tcp, unix }
    private unowned let worker: Worker
    private let descriptor: Descriptor
    private let kind: Kind
    /// Whether the socket stays open when this process ends: the connections that wait are for the next process.
    private let isInherited: Bool
    private let terms: ListenerTerms
    private var event = IOEvent()
    /// Runs while accepting is paused.
    private var pause: Timer?

    /// Connections accepted in one turn at most, so that a flood of them does not starve those that exist.
    private static let acceptsPerTurn = 64

    init(worker: Worker, _ socket: consuming ListeningSocket) {
        self.worker = worker
        descriptor = Descriptor(adopting: socket.descriptor)
        kind = socket.kind
        isInherited = socket.isInherited
        terms = socket.terms
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe event.assign(
            worker.loop, fd: self.descriptor.rawValue, .read,
            { _, _, context in
                unsafe Unmanaged<Listener>.fromOpaque(context!).takeUnretainedValue().acceptAll()
            }, context)
        event.add()
    }

    deinit { if let pause { worker.timers.cancel(pause) } }

    /// Accepts the connections that wait: the system would reset them when the socket is closed. Those at a socket of the service manager stay.
    func acceptLast() {
        if !isInherited && pause == nil { accept(atMost: Sockets.backlog) }
    }

    private func acceptAll() { accept(atMost: Listener.acceptsPerTurn) }

    private func accept(atMost count: Int) {
        for _ in 0..<count {
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
