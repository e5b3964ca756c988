package import Rules

// Access and Caching share these types of Rules. The aliases let users of Access import Access alone.
package typealias AccessRequest = RuleRequest
package typealias Identity = Rules.Identity
package typealias AuthenticationSchemeName = Rules.AuthenticationSchemeName
package typealias AddressRange = Rules.AddressRange
package typealias DestinationHost = Rules.DestinationHost
package typealias HostPattern = Rules.HostPattern
