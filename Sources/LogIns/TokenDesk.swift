package import EventLoop
import Kerberos
import Message

/// The log-ins of a worker whose tokens other threads are making.
package final class TokenDesk {
    let loop: EventLoop
    let tickets: TicketShelf
    private var waiting: [UInt64: (Result<[UInt8], TokenFailure>) -> Void] = [:]
    private var lastNumber: UInt64 = 0

    package init(loop: EventLoop, tickets: TicketShelf) {
        self.loop = loop
        self.tickets = tickets
    }

    var wallTime: WallTime { WallTime(ticks: loop.wallTicks) }

    /// Runs `work` where it may block.
    ///
    /// - Parameter then: called once with its result, in a later turn, unless the wait is cancelled.
    /// - Returns: a number for `cancel`. Nil if too many log-ins wait: neither closure runs then.
    func perform(
        for identity: NegotiateIdentity,
        _ work: @escaping @Sendable (TicketShelf, TicketShelf.Asked) -> Result<[UInt8], TokenFailure>,
        then: @escaping (Result<[UInt8], TokenFailure>) -> Void
    ) -> UInt64? {
        lastNumber += 1
        let (number, inbox, tickets, reference) = (lastNumber, loop.inbox, tickets, Reference(self))
        let isAccepted = tickets.submit(for: identity) { asked in
            let result = work(tickets, asked)
            inbox.post { reference.value.waiting.removeValue(forKey: number)?(result) }
        }
        guard isAccepted else { return nil }
        waiting[number] = then
        return number
    }

    func cancel(_ number: UInt64) { waiting[number] = nil }

    /// For jobs in the inbox of the desk's own loop, which run while the desk lives, or never.
    @safe private struct Reference: @unchecked Sendable {
        private unowned(unsafe) let desk: TokenDesk
        init(_ desk: TokenDesk) { unsafe self.desk = desk }
        var value: TokenDesk { unsafe desk }
    }
}
