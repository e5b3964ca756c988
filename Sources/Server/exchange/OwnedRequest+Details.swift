import EventLoop
import Framing
import Glibc
import Message
import Rules

extension OwnedRequest {
    /// What rules with conditions on details compare.
    var details: RequestDetails {
        var details = RequestDetails()
        details.userAgents = fields.all(.userAgent)
        details.contentTypes = fields.all(.contentType)
        for value in fields.all(.upgrade) {
            forEachListElement(value) { element in
                details.upgrades.append(trimOWS(element.prefix { $0 != UInt8(ascii: "/") }))
            }
        }
        details.connectionUpgrades = options.upgrade
        details.bodyLength =
            switch bodyLength {
            case .none: 0
            case .length(let length): length
            case .chunked, .untilClose, .tunnel: nil
            }
        details.hasAuthorization = fields.contains(.authorization)
        details.ownCredentials = ownCredentials
        details.time = RuleTime.now
        return details
    }
}

extension RuleTime {
    /// Reads the clock, and the zone of this machine (tzset(3)).
    static var now: RuleTime {
        let seconds = WallTime(ticks: readWallTicks()).secondsSinceEpoch
        var time = time_t(seconds)
        var parts = unsafe tm()
        unsafe localtime_r(&time, &parts)
        return RuleTime(seconds: seconds, localOffset: Int64(unsafe parts.tm_gmtoff))
    }
}
