import EventLoop
import LimitTables
import Limiting

/// Counts the bytes of one tunnel, once a second, and ends the tunnel when a budget is spent: nobody knows how much would follow.
final class TunnelMeter {
    private let limits: HeldLimits
    private unowned let worker: Worker
    private var timer: Timer?
    private var counted = (toClient: UInt64(0), fromClient: UInt64(0))
    /// Whether the tunnel was ended because a budget is spent.
    private(set) var isCut = false

    init(_ limits: HeldLimits, _ worker: Worker) {
        self.limits = limits
        self.worker = worker
    }

    func start(_ tunnel: Tunnel) {
        let timer = Timer { [weak self, weak tunnel] in
            if let self, let tunnel { look(at: tunnel) }
        }
        self.timer = timer
        worker.timers.schedule(timer, after: .seconds(1))
    }

    private func look(at tunnel: Tunnel) {
        count(tunnel.relay)
        guard limits.isSpent(at: worker.wallTime.secondsSinceEpoch), let timer else {
            if let timer { worker.timers.schedule(timer, after: .seconds(1)) }
            return
        }
        worker.timers.cancel(timer)
        isCut = true
        tunnel.relay.cancel()
    }

    /// The tunnel has ended.
    func stop(_ relay: any Relay) {
        count(relay)
        if let timer { worker.timers.cancel(timer) }
        timer = nil
    }

    private func count(_ relay: any Relay) {
        let now = worker.wallTime.secondsSinceEpoch
        limits.note(tunnelled: Int(clamping: relay.bToA - counted.toClient), at: now)
        limits.note(received: Int(clamping: relay.aToB - counted.fromClient), at: now)
        counted = (relay.bToA, relay.aToB)
    }
}
