import EventLoop
package import Message

extension Moment {
    /// The present time. For threads without a loop; a worker has `moment`.
    package static func read() -> Moment {
        Moment(uptime: MonotonicTime.read().sinceStart, wallTime: WallTime(ticks: readWallTicks()))
    }
}
