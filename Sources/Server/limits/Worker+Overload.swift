import EventLoop
import Limiting

extension Worker {
    /// Closes idle connections while the load is high, those that are idle for longest first. Once a second.
    func shedIdle() {
        let state = shared.overload.state
        guard state > .calm else { return }
        // The time limit of an idle connection tells since when it is idle. One that has just had an answer may be about to ask again.
        let rest = snapshot.configuration.timeouts.clientIdle - OverloadPolicy.idleMin
        let latest = MonotonicTime(
            nanoseconds: loop.now.nanoseconds + UInt64(clamping: max(.zero, rest).wholeNanoseconds))
        let idle = clients.occupants.filter { $0.isIdle && ($0.deadline ?? loop.now) <= latest }
            .sorted { ($0.deadline ?? loop.now) < ($1.deadline ?? loop.now) }
        for client in idle.prefix(OverloadPolicy.idleToClose(of: idle.count, in: state)) { client.close(.overloaded) }
    }
}
