import EventLoop
import Forwarding
import PACRunner
import Routing

/// The requests of a worker that wait until a PAC file has named their routes.
final class RouteWaits {
    private var waiting: [UInt64: (PACVerdict) -> Void] = [:]
    private var lastNumber: UInt64 = 0

    /// - Returns: the number under which the request is found.
    func add(_ then: @escaping (PACVerdict) -> Void) -> UInt64 {
        lastNumber += 1
        waiting[lastNumber] = then
        return lastNumber
    }

    func remove(_ number: UInt64) { waiting[number] = nil }

    func answered(_ number: UInt64, _ verdict: PACVerdict) { waiting.removeValue(forKey: number)?(verdict) }
}

/// One of them.
struct RouteWait {
    fileprivate let number: UInt64
    fileprivate let script: PACScript
    fileprivate let numberAtScript: UInt64
    fileprivate let origin: Origin
}

/// Which way a request goes, as far as it is known at once.
enum RouteWay {
    case plan(RoutePlan)
    /// A PAC file has to be asked first. Indirect, so that the others are no larger.
    indirect case unknown(ScriptedChoice)
    /// A PAC file says nothing that can be used, and its rule names no other route.
    case refused
}

extension Worker {
    /// Asks a PAC file for the routes of a request.
    ///
    /// - Parameters:
    ///   - id: that of the request.
    ///   - then: called once, in a later turn, unless the wait is cancelled. Nil: the request is refused.
    func ask(
        _ choice: ScriptedChoice, _ snapshot: Snapshot, _ id: RequestID?, then: @escaping (RoutePlan?) -> Void
    ) -> RouteWait {
        let script = snapshot.script(from: choice.source)
        debug(.routes, id, "\(choice.origin): routes[\(choice.rule.number)] asks \(choice.source)")
        let number = routeWaits.add { [unowned self] verdict in then(plan(choice, verdict, id)) }
        let (reference, inbox) = (WorkerReference(self), loop.inbox)
        let numberAtScript = script.ask(choice.origin) { verdict in
            inbox.post { reference.value.routeWaits.answered(number, verdict) }
        }
        return RouteWait(number: number, script: script, numberAtScript: numberAtScript, origin: choice.origin)
    }

    /// The request has left, or waits no longer.
    func cancel(_ wait: RouteWait) {
        routeWaits.remove(wait.number)
        wait.script.leave(wait.numberAtScript, wait.origin)
    }

    /// What the rule makes of an answer. Nil: the request is refused.
    func plan(_ choice: ScriptedChoice, _ verdict: PACVerdict, _ id: RequestID?) -> RoutePlan? {
        let plan = choice.plan(by: verdict)
        if case .failure(let failure) = verdict {
            debug(
                .routes, id,
                "\(choice.origin): routes[\(choice.rule.number)], \(choice.source) failed: \(failure.text), \(plan.map { "otherwise \($0.current)" } ?? "refused")"
            )
        } else if plan == nil {
            debug(
                .routes, id,
                "\(choice.origin): routes[\(choice.rule.number)], \(choice.source) leads directly, and another reading of the path does not: refused"
            )
        }
        return plan.map { inOrderOfHealth($0, to: choice.origin, id) }
    }
}
