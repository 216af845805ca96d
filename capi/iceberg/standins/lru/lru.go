// Package lru stands in the place of a cache that iceberg-go uses and whose licence is none that we link: what was used longest ago goes first.
//
// Invariant: it never holds more than its size.
package lru

import (
	"container/list"
	"errors"
	"sync"
)

// Cache is safe for several goroutines.
type Cache[K comparable, V any] struct {
	mu      sync.Mutex
	size    int
	order   *list.List // of *entry[K, V], the newest first
	entries map[K]*list.Element
	evicted func(K, V)
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// New makes a cache.
func New[K comparable, V any](size int) (*Cache[K, V], error) { return NewWithEvict[K, V](size, nil) }

// NewWithEvict makes a cache that tells what it gives up. It tells it without holding its lock.
func NewWithEvict[K comparable, V any](size int, evicted func(key K, value V)) (*Cache[K, V], error) {
	if size <= 0 {
		return nil, errors.New("a cache has a size")
	}
	return &Cache[K, V]{size: size, order: list.New(), entries: map[K]*list.Element{}, evicted: evicted}, nil
}

// Get finds a value and makes it the newest.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*entry[K, V]).value, true
}

// Add puts a value in and says whether another one went.
func (c *Cache[K, V]) Add(key K, value V) bool {
	c.mu.Lock()
	if e, ok := c.entries[key]; ok {
		e.Value.(*entry[K, V]).value = value
		c.order.MoveToFront(e)
		c.mu.Unlock()
		return false
	}
	c.entries[key] = c.order.PushFront(&entry[K, V]{key, value})
	gone := c.over()
	c.mu.Unlock()
	c.tell(gone)
	return len(gone) > 0
}

// RemoveOldest takes the oldest out.
func (c *Cache[K, V]) RemoveOldest() (key K, value V, ok bool) {
	c.mu.Lock()
	e := c.order.Back()
	if e == nil {
		c.mu.Unlock()
		return key, value, false
	}
	gone := c.drop(e)
	c.mu.Unlock()
	c.tell([]*entry[K, V]{gone})
	return gone.key, gone.value, true
}

// Resize changes the size and says how many went.
func (c *Cache[K, V]) Resize(size int) int {
	c.mu.Lock()
	c.size = size
	gone := c.over()
	c.mu.Unlock()
	c.tell(gone)
	return len(gone)
}

func (c *Cache[K, V]) over() (gone []*entry[K, V]) {
	for c.order.Len() > c.size {
		gone = append(gone, c.drop(c.order.Back()))
	}
	return gone
}

func (c *Cache[K, V]) drop(e *list.Element) *entry[K, V] {
	gone := c.order.Remove(e).(*entry[K, V])
	delete(c.entries, gone.key)
	return gone
}

func (c *Cache[K, V]) tell(gone []*entry[K, V]) {
	for _, e := range gone {
		if c.evicted != nil {
			c.evicted(e.key, e.value)
		}
	}
}
