package import Rules

// Access speaks of hosts, addresses and conditions in the words that all rules share (module Rules). Whoever asks Access
// something needs no more than Access.
package typealias AccessRequest = RuleRequest
package typealias Identity = Rules.Identity
package typealias AuthenticationSchemeName = Rules.AuthenticationSchemeName
package typealias AddressRange = Rules.AddressRange
package typealias DestinationHost = Rules.DestinationHost
package typealias HostPattern = Rules.HostPattern
