module charges

go 1.24.0

require github.com/stripe/stripe-go/v84 v84.4.1
