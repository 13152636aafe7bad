// Charges by Stripe's own library for Go, at the address of the first argument.
package main

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/stripe/stripe-go/v84"
	"github.com/stripe/stripe-go/v84/charge"
)

var client charge.Client

func create(key string, amount int64, does string, account string) string {
	params := &stripe.ChargeParams{
		Amount:      stripe.Int64(amount),
		Currency:    stripe.String("eur"),
		Description: stripe.String(does),
	}
	params.SetIdempotencyKey(key)
	if account != "" {
		params.SetStripeAccount(account)
	}
	charged, err := client.New(params)
	var refused *stripe.Error
	if errors.As(err, &refused) {
		return fmt.Sprintf("%s %d %s", refused.Type, refused.HTTPStatusCode, refused.Code)
	}
	if err != nil {
		return err.Error()
	}
	return charged.ID
}

func told(what string, said ...string) {
	fmt.Printf("%s: %s\n", what, strings.Join(said, ", "))
}

func main() {
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL:               stripe.String(os.Args[1]),
		MaxNetworkRetries: stripe.Int64(8),
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	client = charge.Client{B: backend, Key: "sk_test_alice"}
	told("again", create("k;1", 100, "pay", ""), create("k;1", 100, "pay", ""))
	told("reused", create("k;1", 999, "pay", ""))
	told("accounts", create("k-2", 100, "pay", "acct_1"), create("k-2", 100, "pay", "acct_2"))
	charged := make(chan string)
	for range 2 {
		go func() { charged <- create("k-3", 100, "wait", "") }()
	}
	both := []string{<-charged, <-charged}
	sort.Strings(both)
	told("in flight", both...)
	told("failed", create("k-4", 100, "fail", ""), create("k-4", 100, "fail", ""))
	told("vanished", create("k-5", 100, "vanish", ""), create("k-5", 100, "vanish", ""))
}
